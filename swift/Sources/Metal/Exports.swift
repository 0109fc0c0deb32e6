// Apple's Metal re-exports Foundation, which on Apple's systems includes these names from Darwin. Linux lacks them.
@_exported import Foundation
@_exported import OrchardDarwin

/// An alias, because only the standard library's pointer types accept `&variable` as an argument.
public typealias AutoreleasingUnsafeMutablePointer<Pointee> = UnsafeMutablePointer<Pointee>
