def mesh_uv_wrap(mesh):
    return mesh
