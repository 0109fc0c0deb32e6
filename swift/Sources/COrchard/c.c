#include "orchard.h"
