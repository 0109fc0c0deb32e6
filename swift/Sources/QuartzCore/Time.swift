// This QuartzCore has only the clock, the only part that compute programs use.
@_exported import Foundation
@_exported import OrchardDarwin

/// Returns the machine's monotonic clock in seconds.
public func CACurrentMediaTime() -> Double { ProcessInfo.processInfo.systemUptime }
