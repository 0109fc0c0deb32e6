// Compute programs use only the clock of QuartzCore.
@_exported import Foundation
@_exported import OrchardDarwin

/// Returns the machine's monotonic clock in seconds.
public func CACurrentMediaTime() -> Double { ProcessInfo.processInfo.systemUptime }
