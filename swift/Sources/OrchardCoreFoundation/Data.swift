public func CFDataGetLength(_ data: CFData) -> CFIndex { data.count }

/// Returns the address of the bytes, which stays valid as long as the data exists. Up to 14 bytes are in the value
/// itself, without an address, so those are copied to memory that is never released.
public func CFDataGetBytePtr(_ data: CFData) -> UnsafePointer<UInt8>! {
    if data.count > 14 { return data.withUnsafeBytes { $0.bindMemory(to: UInt8.self).baseAddress } }
    let copy = UnsafeMutablePointer<UInt8>.allocate(capacity: max(data.count, 1))
    data.copyBytes(to: copy, count: data.count)
    return UnsafePointer(copy)
}

public func CFDataCreate(_ allocator: CFAllocator?, _ bytes: UnsafePointer<UInt8>?, _ length: CFIndex) -> CFData? {
    bytes.map { Data(bytes: $0, count: length) } ?? Data()
}

public func CFDataCreateMutable(_ allocator: CFAllocator?, _ capacity: CFIndex) -> CFMutableData? { NSMutableData() }

/// A reference that the program retains and releases explicitly. On a Mac its instance may be of an Objective-C
/// protocol, such as `any MTLBuffer`, or of a Core Foundation type. On Linux, Swift's `Unmanaged` accepts only classes,
/// but `any MTLBuffer` is not a class type there and `CFData` is a structure. This one accepts any type.
public struct Unmanaged<Instance>: @unchecked Sendable {
    private let reference: Swift.Unmanaged<AnyObject>

    private init(_ reference: Swift.Unmanaged<AnyObject>) { self.reference = reference }

    public static func fromOpaque(_ value: UnsafeRawPointer) -> Unmanaged { Unmanaged(.fromOpaque(value)) }
    public static func passRetained(_ value: Instance) -> Unmanaged { Unmanaged(.passRetained(value as AnyObject)) }
    /// For a structure, refers to a copy that is never released.
    public static func passUnretained(_ value: Instance) -> Unmanaged {
        Unmanaged(type(of: value) is AnyClass ? .passUnretained(value as AnyObject) : .passRetained(value as AnyObject))
    }

    public func toOpaque() -> UnsafeMutableRawPointer { reference.toOpaque() }
    public func takeUnretainedValue() -> Instance { reference.takeUnretainedValue() as! Instance }
    public func takeRetainedValue() -> Instance { reference.takeRetainedValue() as! Instance }
    @discardableResult public func retain() -> Unmanaged { Unmanaged(reference.retain()) }
    public func release() { reference.release() }
    public func _withUnsafeGuaranteedRef<Result>(_ body: (Instance) throws -> Result) rethrows -> Result {
        try body(takeUnretainedValue())
    }
}

/// Compares the identity of values of a protocol such as `any MTLBuffer`, which on a Mac is a class type.
@_disfavoredOverload public func === <Value>(left: Value, right: Value) -> Bool {
    (left as AnyObject) === (right as AnyObject)
}

@_disfavoredOverload public func !== <Value>(left: Value, right: Value) -> Bool { !(left === right) }
