// This IOSurface has only surfaces with one plane, in the process's memory. Textures can share it.
@_exported import Metal
@_exported import OrchardCoreFoundation

public let kIOSurfaceWidth: CFString = "IOSurfaceWidth"
public let kIOSurfaceHeight: CFString = "IOSurfaceHeight"
public let kIOSurfaceBytesPerElement: CFString = "IOSurfaceBytesPerElement"
public let kIOSurfaceBytesPerRow: CFString = "IOSurfaceBytesPerRow"
public let kIOSurfacePixelFormat: CFString = "IOSurfacePixelFormat"

public struct IOSurfacePropertyKey: RawRepresentable, Hashable, Sendable {
    public let rawValue: String
    public init(rawValue: String) { self.rawValue = rawValue }
    public static let width = IOSurfacePropertyKey(rawValue: kIOSurfaceWidth)
    public static let height = IOSurfacePropertyKey(rawValue: kIOSurfaceHeight)
    public static let bytesPerElement = IOSurfacePropertyKey(rawValue: kIOSurfaceBytesPerElement)
    public static let bytesPerRow = IOSurfacePropertyKey(rawValue: kIOSurfaceBytesPerRow)
    public static let pixelFormat = IOSurfacePropertyKey(rawValue: kIOSurfacePixelFormat)
}

public struct IOSurfaceLockOptions: OptionSet, Sendable {
    public let rawValue: UInt32
    public init(rawValue: UInt32) { self.rawValue = rawValue }
    public static let readOnly = IOSurfaceLockOptions(rawValue: 1)
    public static let avoidSync = IOSurfaceLockOptions(rawValue: 2)
}

public final class IOSurface: @unchecked Sendable {
    public let width: Int
    public let height: Int
    public let bytesPerElement: Int
    public let bytesPerRow: Int
    public let pixelFormat: UInt32
    public let baseAddress: UnsafeMutableRawPointer
    public let allocationSize: Int

    /// Returns nil unless the properties have a width, a height and the bytes per element.
    public init?(properties: [IOSurfacePropertyKey: Any]) {
        func number(_ key: IOSurfacePropertyKey) -> Int {
            let value = properties[key]
            return (value as? any BinaryInteger).map { Int($0) } ?? (value as? NSNumber)?.intValue ?? 0
        }
        (width, height, bytesPerElement) = (number(.width), number(.height), number(.bytesPerElement))
        guard width > 0, height > 0, bytesPerElement > 0 else { return nil }
        bytesPerRow = max(number(.bytesPerRow), (width * bytesPerElement + 63) / 64 * 64)
        pixelFormat = UInt32(truncatingIfNeeded: number(.pixelFormat))
        // Rounded up to whole pages of Apple silicon, since a Metal buffer that shares the memory requires them.
        allocationSize = (bytesPerRow * height + 16383) / 16384 * 16384
        baseAddress = .allocate(byteCount: allocationSize, alignment: 16384)
        baseAddress.initializeMemory(as: UInt8.self, repeating: 0, count: allocationSize)
    }

    deinit { baseAddress.deallocate() }

    @discardableResult
    public func lock(options: IOSurfaceLockOptions = [], seed: UnsafeMutablePointer<UInt32>? = nil) -> Int32 { 0 }
    @discardableResult
    public func unlock(options: IOSurfaceLockOptions = [], seed: UnsafeMutablePointer<UInt32>? = nil) -> Int32 { 0 }
}

public typealias IOSurfaceRef = IOSurface

public func IOSurfaceCreate(_ properties: CFDictionary) -> IOSurfaceRef? {
    let pairs = properties.compactMap { key, value in
        (key as? String).map { (IOSurfacePropertyKey(rawValue: $0), value) }
    }
    return IOSurface(properties: Dictionary(uniqueKeysWithValues: pairs))
}
public func IOSurfaceGetWidth(_ surface: IOSurfaceRef) -> Int { surface.width }
public func IOSurfaceGetHeight(_ surface: IOSurfaceRef) -> Int { surface.height }
public func IOSurfaceGetWidthOfPlane(_ surface: IOSurfaceRef, _ plane: Int) -> Int { surface.width }
public func IOSurfaceGetHeightOfPlane(_ surface: IOSurfaceRef, _ plane: Int) -> Int { surface.height }
public func IOSurfaceGetBytesPerRow(_ surface: IOSurfaceRef) -> Int { surface.bytesPerRow }
public func IOSurfaceGetPixelFormat(_ surface: IOSurfaceRef) -> UInt32 { surface.pixelFormat }
public func IOSurfaceGetBaseAddress(_ surface: IOSurfaceRef) -> UnsafeMutableRawPointer { surface.baseAddress }
public func IOSurfaceGetPlaneCount(_ surface: IOSurfaceRef) -> Int { 0 }
public func IOSurfaceGetAllocSize(_ surface: IOSurfaceRef) -> Int { surface.allocationSize }

extension MTLDevice {
    /// Makes a texture of a surface's memory. The surface must exist as long as the texture.
    public func makeTexture(
        descriptor: MTLTextureDescriptor, iosurface: IOSurfaceRef, plane: Int
    ) -> (any MTLTexture)? {
        guard plane == 0 else { return nil }
        let buffer = makeBuffer(
            bytesNoCopy: iosurface.baseAddress, length: iosurface.allocationSize, options: .storageModeShared,
            deallocator: { _, _ in withExtendedLifetime(iosurface) {} })
        return buffer?.makeTexture(descriptor: descriptor, offset: 0, bytesPerRow: iosurface.bytesPerRow)
    }
}
