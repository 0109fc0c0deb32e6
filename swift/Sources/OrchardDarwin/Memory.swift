// Functions of Darwin's C library that Glibc lacks, and constants of its headers.

public let NSEC_PER_SEC: UInt64 = 1_000_000_000
public let NSEC_PER_MSEC: UInt64 = 1_000_000
public let NSEC_PER_USEC: UInt64 = 1000
public let USEC_PER_SEC: UInt64 = 1_000_000
public let MSEC_PER_SEC: UInt64 = 1000
public let MACH_PORT_NULL: Int32 = 0

public typealias errno_t = Int32
public typealias rsize_t = Int

/// Sets `n` bytes; the compiler never removes the call. Returns `EINVAL` for a null pointer and `EOVERFLOW` for sizes
/// over `smax`, after setting `smax` bytes.
@discardableResult
public func memset_s(_ s: UnsafeMutableRawPointer!, _ smax: rsize_t, _ c: Int32, _ n: rsize_t) -> errno_t {
    guard let s, smax >= 0, n >= 0 else { return EINVAL }
    let count = min(n, smax)
    if c == 0 {
        explicit_bzero(s, count)
    } else {
        memset(s, c, count)
    }
    return n > smax ? EOVERFLOW : 0
}

/// Fills `len` bytes with repetitions of the pattern; the last one may be incomplete.
private func fill(_ b: UnsafeMutableRawPointer, _ pattern: UnsafeRawPointer, _ size: Int, _ len: Int) {
    for offset in stride(from: 0, to: len, by: size) {
        (b + offset).copyMemory(from: pattern, byteCount: min(size, len - offset))
    }
}

public func memset_pattern4(_ b: UnsafeMutableRawPointer!, _ pattern4: UnsafeRawPointer!, _ len: Int) {
    fill(b, pattern4, 4, len)
}

public func memset_pattern8(_ b: UnsafeMutableRawPointer!, _ pattern8: UnsafeRawPointer!, _ len: Int) {
    fill(b, pattern8, 8, len)
}

public func memset_pattern16(_ b: UnsafeMutableRawPointer!, _ pattern16: UnsafeRawPointer!, _ len: Int) {
    fill(b, pattern16, 16, len)
}

/// Compares metatypes. On a Mac they are objects, which the standard library's operator compares.
public func === (left: Any.Type?, right: Any.Type?) -> Bool { left == right }
public func !== (left: Any.Type?, right: Any.Type?) -> Bool { left != right }
