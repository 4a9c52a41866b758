// What the library and `torch_multiclass/ops/_native.py` agree on. The structs are in the headers of the topics; whoever
// adds or changes a function, a struct or a meaning raises TM_ABI, and `ABI` over there.
#pragma once
#include <stdint.h>

#define TM_ABI 24

#if defined(_WIN32)
#define TM_EXPORT extern "C" __declspec(dllexport)
#else
#define TM_EXPORT extern "C" __attribute__((visibility("default")))
#endif
