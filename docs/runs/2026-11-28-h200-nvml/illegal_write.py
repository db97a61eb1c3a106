import torch, time
src = r'''extern "C" __global__ void bad(float* p){ p[0]=1.0f; }'''
k = torch.cuda._compile_kernel(src, "bad")
x = torch.ones(4, device="cuda"); print("up", flush=True); time.sleep(6)
try:
    k(grid=(1,1,1), block=(1,1,1), args=[0xdead0000])
    torch.cuda.synchronize()
except Exception as e:
    print("error:", str(e)[:200], flush=True)
time.sleep(3)
