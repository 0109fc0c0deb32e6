// Helpers for kernels with one buffer per tensor: name_0, name_1, …
#pragma once

#define NINE_BUFFERS(pointer, name, first)                                              \
    pointer name##_0 [[buffer(first)]], pointer name##_1 [[buffer(first + 1)]],         \
        pointer name##_2 [[buffer(first + 2)]], pointer name##_3 [[buffer(first + 3)]], \
        pointer name##_4 [[buffer(first + 4)]], pointer name##_5 [[buffer(first + 5)]], \
        pointer name##_6 [[buffer(first + 6)]], pointer name##_7 [[buffer(first + 7)]], \
        pointer name##_8 [[buffer(first + 8)]]

// The buffer with the given number if the number is below 8, else `other`.
#define CHOSEN_OF_EIGHT(name, number, other) \
    (number == 0   ? name##_0                \
     : number == 1 ? name##_1                \
     : number == 2 ? name##_2                \
     : number == 3 ? name##_3                \
     : number == 4 ? name##_4                \
     : number == 5 ? name##_5                \
     : number == 6 ? name##_6                \
     : number == 7 ? name##_7                \
                   : other)
