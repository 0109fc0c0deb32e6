// The contents of `import Darwin` for programs: the C library, and the functions below that Linux lacks. The module has
// another name because packages ask `#if canImport(Darwin)` to tell Apple's systems from Linux. The compiler reads
// `Darwin` as this module only in modules that import it outside of `#if`.
@_exported import Glibc

public typealias kern_return_t = Int32
public typealias mach_port_t = UInt32
public typealias natural_t = UInt32
public typealias integer_t = Int32
public typealias mach_msg_type_number_t = natural_t
public typealias mach_vm_size_t = UInt64
public let KERN_SUCCESS: kern_return_t = 0
public let KERN_INVALID_ARGUMENT: kern_return_t = 4

/// Numerator and denominator of the factor from ticks to nanoseconds.
public struct mach_timebase_info_data_t: Sendable {
    public var numer: UInt32
    public var denom: UInt32

    public init() { (numer, denom) = (0, 0) }
    public init(numer: UInt32, denom: UInt32) { (self.numer, self.denom) = (numer, denom) }
}
/// In C a structure has this name too, which Swift calls as its initializer.
public func mach_timebase_info() -> mach_timebase_info_data_t { .init() }
public func mach_timebase_info(numer: UInt32, denom: UInt32) -> mach_timebase_info_data_t {
    .init(numer: numer, denom: denom)
}

/// A tick is a nanosecond.
@discardableResult
public func mach_timebase_info(_ info: UnsafeMutablePointer<mach_timebase_info_data_t>) -> kern_return_t {
    info.pointee = .init(numer: 1, denom: 1)
    return KERN_SUCCESS
}

private func nanoseconds(_ clock: clockid_t) -> UInt64 {
    var time = timespec()
    clock_gettime(clock, &time)
    return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
}

/// Returns nanoseconds since the machine started, not counting the time that it was asleep.
public func mach_absolute_time() -> UInt64 { nanoseconds(CLOCK_MONOTONIC) }
public func mach_approximate_time() -> UInt64 { nanoseconds(CLOCK_MONOTONIC) }
/// Returns nanoseconds since the machine started, including the time that it was asleep.
public func mach_continuous_time() -> UInt64 { nanoseconds(CLOCK_BOOTTIME) }

public let CLOCK_UPTIME_RAW: clockid_t = CLOCK_MONOTONIC
public let CLOCK_MONOTONIC_RAW_APPROX: clockid_t = CLOCK_MONOTONIC_COARSE
/// Returns the time of a clock in nanoseconds.
public func clock_gettime_nsec_np(_ clock: clockid_t) -> UInt64 { nanoseconds(clock) }
/// The bytes of a page of Apple silicon, for which programs round their sizes up.
public let vm_page_size: UInt = 16384
