// Small kernels that move data in different ways; compiled by tests/harness/test_builds.py, and recorded beside this file.
#include <cstdint>

struct Peers {
  const void* data[8];
  unsigned* flags[8];
};

__global__ void pull(Peers peers, uint4* out, long count, unsigned seq) {
  unsigned seen;
  asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(peers.flags[0]), "r"(seq) : "memory");
  do {
    asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(seen) : "l"(peers.flags[1]) : "memory");
  } while ((int)(seen - seq) < 0);
  long i = blockIdx.x * (long)blockDim.x + threadIdx.x;
  if (i < count) out[i] = ((const uint4*)peers.data[3])[i];
}

__global__ void multicast(void* group) {
  asm volatile("multimem.st.relaxed.sys.global.u32 [%0], %1;" ::"l"(group), "r"(threadIdx.x) : "memory");
}

__global__ void bulk(const void* from, uint4* out, uint32_t bytes) {
  __shared__ __align__(128) uint4 tile[64];
  __shared__ uint64_t barrier;
  uint32_t bar = (uint32_t)__cvta_generic_to_shared(&barrier), to = (uint32_t)__cvta_generic_to_shared(tile);
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to),
               "l"(from), "r"(bytes), "r"(bar)
               : "memory");
  out[threadIdx.x] = tile[threadIdx.x];
}

// 64 registers a thread and 200 values alive: the rest is spilled.
__global__ void __launch_bounds__(1024) spilling(float* values, int rounds) {
  float v[200];
  for (int i = 0; i < 200; i++) v[i] = values[i * 1024 + threadIdx.x];
  for (int k = 0; k < rounds; k++)
    for (int i = 0; i < 200; i++) v[i] = v[i] * v[(i + 7) % 200] + 1;
  for (int i = 0; i < 200; i++) values[i * 1024 + threadIdx.x] = v[i];
}

__global__ void plain(const float* a, float* b) { b[threadIdx.x] = 2 * a[threadIdx.x]; }
