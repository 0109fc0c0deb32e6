// The names of Core Foundation that appear in the interfaces of Core Video and IOKit, as Swift types. On a Mac, `as`
// bridges them to the same types.
@_exported import Foundation

public typealias CFTypeRef = AnyObject
public typealias CFTypeID = UInt
public typealias CFIndex = Int
public typealias CFString = String
public typealias CFDictionary = [AnyHashable: Any]
public typealias CFMutableDictionary = [AnyHashable: Any]
public typealias CFNumber = NSNumber
public typealias CFData = Data
public typealias CFMutableData = NSMutableData
public typealias CFURL = URL
public typealias CFError = any Error

public final class CFAllocator: Sendable {}
/// The only allocator: objects are in the process's memory.
public let kCFAllocatorDefault: CFAllocator? = nil

public struct CFRange: Equatable, Sendable {
    public var location: CFIndex
    public var length: CFIndex

    public init() { (location, length) = (0, 0) }
    public init(location: CFIndex, length: CFIndex) { (self.location, self.length) = (location, length) }
}

public func CFRangeMake(_ location: CFIndex, _ length: CFIndex) -> CFRange {
    CFRange(location: location, length: length)
}

public enum CFNumberType: CFIndex, Sendable {
    case sInt8Type = 1
    case sInt16Type = 2
    case sInt32Type = 3
    case sInt64Type = 4
    case float32Type = 5
    case float64Type = 6
    case charType = 7
    case shortType = 8
    case intType = 9
    case longType = 10
    case longLongType = 11
    case floatType = 12
    case doubleType = 13
    case cfIndexType = 14
    case nsIntegerType = 15
    case cgFloatType = 16
}

/// Returns the widest type of the number's kind, since Foundation on Linux does not store the width of an integer.
public func CFNumberGetType(_ number: CFNumber) -> CFNumberType {
    let type = UInt8(bitPattern: number.objCType.pointee)
    return type == UInt8(ascii: "f") || type == UInt8(ascii: "d") ? .float64Type : .sInt64Type
}

/// Stores the number as `type` at `value`. Returns false if the conversion loses information.
@discardableResult
public func CFNumberGetValue(_ number: CFNumber, _ type: CFNumberType, _ value: UnsafeMutableRawPointer) -> Bool {
    func store<T>(_ stored: T, _ back: NSNumber) -> Bool {
        value.storeBytes(of: stored, as: T.self)
        return back == number
    }
    switch type {
    case .sInt8Type, .charType: return store(number.int8Value, NSNumber(value: number.int8Value))
    case .sInt16Type, .shortType: return store(number.int16Value, NSNumber(value: number.int16Value))
    case .sInt32Type, .intType: return store(number.int32Value, NSNumber(value: number.int32Value))
    case .sInt64Type, .longType, .longLongType, .cfIndexType, .nsIntegerType:
        return store(number.int64Value, NSNumber(value: number.int64Value))
    case .float32Type, .floatType: return store(number.floatValue, NSNumber(value: number.floatValue))
    case .float64Type, .doubleType, .cgFloatType:
        return store(number.doubleValue, NSNumber(value: number.doubleValue))
    }
}
