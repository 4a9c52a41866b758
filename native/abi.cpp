#include "abi.h"

TM_EXPORT int32_t tm_abi() { return TM_ABI; }
