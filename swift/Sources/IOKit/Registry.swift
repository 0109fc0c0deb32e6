// This IOKit has only the registry, with one entry: the software device. Programs look it up to get the number of GPU
// cores.
@_exported import OrchardCoreFoundation
@_exported import OrchardDarwin

public typealias IOReturn = kern_return_t
public typealias IOOptionBits = UInt32
public typealias io_object_t = mach_port_t
public typealias io_iterator_t = io_object_t
public typealias io_service_t = io_object_t
public typealias io_registry_entry_t = io_object_t

public let kIOReturnSuccess: IOReturn = 0
public let kIOReturnBadArgument = IOReturn(bitPattern: 0xe000_02c2)
public let IO_OBJECT_NULL: io_object_t = 0
public let kIOMainPortDefault: mach_port_t = 0
public let kIOMasterPortDefault: mach_port_t = 0
public let kIOServicePlane = "IOService"
public let kIOProviderClassKey = "IOProviderClass"
public let kIORegistryIterateRecursively: IOOptionBits = 1
public let kIORegistryIterateParents: IOOptionBits = 2

/// The class of the GPU's entry in the registry of an M1.
private let gpuClass = "AGXAccelerator"
private let gpuEntry: io_registry_entry_t = 1
/// An M1 has eight GPU cores. Programs choose sizes by the number; it does not limit the software device's threads.
private let gpuProperties: [String: AnyObject] = [
    "gpu-core-count": NSNumber(value: Int64(8)), "IOClass": "AGXAcceleratorG13G" as NSString,
]

/// Iterators by number, each with the entries that it has not returned yet. Iterators are numbered after the entries.
private final class Iterators: @unchecked Sendable {
    static let shared = Iterators()
    private let lock = NSLock()
    private var left: [io_iterator_t: [io_object_t]] = [:]
    private var last: io_iterator_t = 0x1000

    func make(_ entries: [io_object_t]) -> io_iterator_t {
        lock.withLock {
            last += 1
            left[last] = entries
            return last
        }
    }

    func next(_ iterator: io_iterator_t) -> io_object_t {
        lock.withLock { left[iterator]?.isEmpty ?? true ? IO_OBJECT_NULL : left[iterator]!.removeFirst() }
    }

    /// Returns false if there is no such iterator.
    func release(_ iterator: io_iterator_t) -> Bool { lock.withLock { left.removeValue(forKey: iterator) != nil } }
}

public func IOServiceMatching(_ name: UnsafePointer<CChar>!) -> CFMutableDictionary! {
    [kIOProviderClassKey: String(cString: name)]
}

private func entries(matching: CFDictionary?) -> [io_object_t] {
    matching?[kIOProviderClassKey] as? String == gpuClass ? [gpuEntry] : []
}

/// Returns `IO_OBJECT_NULL` for everything but the class `AGXAccelerator`.
public func IOServiceGetMatchingService(_ mainPort: mach_port_t, _ matching: CFDictionary!) -> io_service_t {
    entries(matching: matching).first ?? IO_OBJECT_NULL
}

@discardableResult
public func IOServiceGetMatchingServices(
    _ mainPort: mach_port_t, _ matching: CFDictionary!, _ existing: UnsafeMutablePointer<io_iterator_t>!
) -> kern_return_t {
    guard matching != nil else { return kIOReturnBadArgument }
    existing.pointee = Iterators.shared.make(entries(matching: matching))
    return kIOReturnSuccess
}

public func IOIteratorNext(_ iterator: io_iterator_t) -> io_object_t { Iterators.shared.next(iterator) }

@discardableResult
public func IOObjectRelease(_ object: io_object_t) -> kern_return_t {
    object == gpuEntry || Iterators.shared.release(object) ? kIOReturnSuccess : kIOReturnBadArgument
}

/// Returns nil if the entry has no such property.
public func IORegistryEntrySearchCFProperty(
    _ entry: io_registry_entry_t, _ plane: UnsafePointer<CChar>!, _ key: CFString!, _ allocator: CFAllocator!,
    _ options: IOOptionBits
) -> CFTypeRef! {
    entry == gpuEntry ? gpuProperties[key] : nil
}

public func IORegistryEntryCreateCFProperty(
    _ entry: io_registry_entry_t, _ key: CFString!, _ allocator: CFAllocator!, _ options: IOOptionBits
) -> Unmanaged<CFTypeRef>! {
    entry == gpuEntry ? gpuProperties[key].map { Unmanaged.passRetained($0) } : nil
}
