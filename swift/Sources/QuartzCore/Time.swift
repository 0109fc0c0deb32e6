// Of QuartzCore compute programs take the clock alone.
@_exported import Foundation

/// Seconds of the machine's monotonic clock.
public func CACurrentMediaTime() -> Double { ProcessInfo.processInfo.systemUptime }
