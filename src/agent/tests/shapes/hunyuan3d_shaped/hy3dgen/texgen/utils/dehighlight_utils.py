class Light_Shadow_Remover:
    """As Hunyuan3D's: one call of the pipeline for a picture, seeded anew each time."""

    def __init__(self, config):
        self.pipeline = config["delight"]

    def __call__(self, image):
        return self.pipeline(image)
