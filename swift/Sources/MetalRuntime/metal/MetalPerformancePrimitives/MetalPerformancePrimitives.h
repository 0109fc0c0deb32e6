#include "../metal_tensor"
