class Multiview_Diffusion_Net:
    def __init__(self, config):
        self.pipeline = config["views"]

    def __call__(self, input_images, control_images, camera_info):
        return [self.pipeline(image) for image in input_images]
