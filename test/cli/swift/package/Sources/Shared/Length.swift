#if canImport(Darwin)
import Darwin
/// Whether this module runs on an Apple system.
public let asksDarwin = true
#else
import Glibc
/// Whether this module runs on an Apple system.
public let asksDarwin = false
#endif

/// How many elements the program computes.
public let length = 100
