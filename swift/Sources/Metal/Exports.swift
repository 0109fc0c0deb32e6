// Apple's Metal re-exports Foundation, which on Apple's systems includes these names from Darwin. Linux lacks them.
@_exported import Foundation
@_exported import OrchardDarwin

/// An alias, because only the standard library's pointer types accept `&variable` as an argument.
public typealias AutoreleasingUnsafeMutablePointer<Pointee> = UnsafeMutablePointer<Pointee>

/// Reference counting on Linux uses no autorelease pools, so there is nothing to drain.
public func autoreleasepool<Result>(invoking body: () throws -> Result) rethrows -> Result { try body() }
