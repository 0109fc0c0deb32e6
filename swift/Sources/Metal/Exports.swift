// Apple's Metal re-exports Foundation; there, Foundation also brings these names of Darwin's, which Linux lacks.
@_exported import Foundation

public typealias CFTimeInterval = Double
public typealias CFAbsoluteTime = CFTimeInterval

/// An alias, because only the standard library's own pointer types accept `&variable` as an argument.
public typealias AutoreleasingUnsafeMutablePointer<Pointee> = UnsafeMutablePointer<Pointee>

/// Seconds since 1 January 2001.
public func CFAbsoluteTimeGetCurrent() -> CFAbsoluteTime { Date().timeIntervalSinceReferenceDate }

/// Linux counts references without pools, so there is nothing to drain.
public func autoreleasepool<Result>(invoking body: () throws -> Result) rethrows -> Result { try body() }
