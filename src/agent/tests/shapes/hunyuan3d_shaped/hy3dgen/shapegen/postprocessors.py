"""Postprocessors with the names of Hunyuan3D's."""


class FloaterRemover:
    def __call__(self, mesh):
        return mesh


class FaceReducer:
    def __call__(self, mesh, max_facenum=40000):
        return mesh
