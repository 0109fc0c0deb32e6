// CoreFoundation's clock, which Foundation exports on Apple's systems.
import Foundation

public typealias CFTimeInterval = Double
public typealias CFAbsoluteTime = CFTimeInterval

/// Returns seconds since 1 January 2001.
public func CFAbsoluteTimeGetCurrent() -> CFAbsoluteTime { Date().timeIntervalSinceReferenceDate }
