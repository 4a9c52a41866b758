// Which of the compiled loops this processor runs.
#include "abi.h"

TM_EXPORT int32_t tm_abi() { return TM_ABI; }

TM_EXPORT const char *tm_level() {
#if defined(__x86_64__) || defined(_M_X64)
  __builtin_cpu_init();
  bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  if (avx2 && avx512) return "avx512";
  if (avx2) return "avx2";
  return __builtin_cpu_supports("sse4.1") ? "sse4" : "";
#else
  return "base";
#endif
}
