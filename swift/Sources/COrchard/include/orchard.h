#pragma once
#include <stdint.h>
int32_t orchard_abi_version(void);
