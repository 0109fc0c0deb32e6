// CoreVideo has only pixel buffers with one plane here, in the process's memory, for compute programs to fill and read.
@_exported import CoreGraphics
@_exported import OrchardCoreFoundation

public typealias CVReturn = Int32
public typealias OSType = UInt32
public typealias CVOptionFlags = UInt64

public let kCVReturnSuccess: CVReturn = 0
public let kCVReturnError: CVReturn = -6660
public let kCVReturnInvalidArgument: CVReturn = -6661
public let kCVReturnAllocationFailed: CVReturn = -6662
public let kCVReturnInvalidPixelFormat: CVReturn = -6680
public let kCVReturnInvalidSize: CVReturn = -6681

public let kCVPixelBufferPixelFormatTypeKey: CFString = "PixelFormatType"
public let kCVPixelBufferWidthKey: CFString = "Width"
public let kCVPixelBufferHeightKey: CFString = "Height"
public let kCVPixelBufferMetalCompatibilityKey: CFString = "MetalCompatibility"
public let kCVPixelBufferIOSurfacePropertiesKey: CFString = "IOSurfaceProperties"

/// Returns the numeric value of a four-character code.
private func format(_ letters: StaticString) -> OSType {
    letters.withUTF8Buffer { $0.reduce(0) { $0 << 8 | OSType($1) } }
}

public let kCVPixelFormatType_32BGRA = format("BGRA")
public let kCVPixelFormatType_32RGBA = format("RGBA")
public let kCVPixelFormatType_32ARGB: OSType = 32
public let kCVPixelFormatType_OneComponent8 = format("L008")
public let kCVPixelFormatType_OneComponent16Half = format("L00h")
public let kCVPixelFormatType_OneComponent32Float = format("L00f")
public let kCVPixelFormatType_TwoComponent8 = format("2C08")
public let kCVPixelFormatType_TwoComponent16Half = format("2C0h")
public let kCVPixelFormatType_TwoComponent32Float = format("2C0f")
public let kCVPixelFormatType_64RGBAHalf = format("RGhA")
public let kCVPixelFormatType_128RGBAFloat = format("RGfA")

let bytesPerPixel: [OSType: Int] = [
    kCVPixelFormatType_32BGRA: 4, kCVPixelFormatType_32RGBA: 4, kCVPixelFormatType_32ARGB: 4,
    kCVPixelFormatType_OneComponent8: 1, kCVPixelFormatType_OneComponent16Half: 2,
    kCVPixelFormatType_OneComponent32Float: 4, kCVPixelFormatType_TwoComponent8: 2,
    kCVPixelFormatType_TwoComponent16Half: 4, kCVPixelFormatType_TwoComponent32Float: 8,
    kCVPixelFormatType_64RGBAHalf: 8, kCVPixelFormatType_128RGBAFloat: 16,
]

public struct CVPixelBufferLockFlags: OptionSet, Sendable {
    public let rawValue: CVOptionFlags
    public init(rawValue: CVOptionFlags) { self.rawValue = rawValue }
    public static let readOnly = CVPixelBufferLockFlags(rawValue: 1)
}

/// A pixel buffer, whose rows begin at multiples of 64 bytes; or a texture of one, which shares its memory.
public final class CVBuffer {
    let width: Int
    let height: Int
    let type: OSType
    let bytesPerRow: Int
    let memory: UnsafeMutableRawPointer
    /// Of the memory: whole pages, as a buffer of Metal that shares it requires.
    let length: Int
    let texture: CVTexture?
    fileprivate var locks = 0

    fileprivate init(width: Int, height: Int, type: OSType, bytesPerPixel: Int) {
        (self.width, self.height, self.type) = (width, height, type)
        bytesPerRow = (width * bytesPerPixel + 63) / 64 * 64
        length = (bytesPerRow * height + pageSize - 1) / pageSize * pageSize
        memory = UnsafeMutableRawPointer.allocate(byteCount: length, alignment: pageSize)
        memory.initializeMemory(as: UInt8.self, repeating: 0, count: length)
        texture = nil
    }

    init(texture: CVTexture) {
        let pixels = texture.pixels
        (width, height, type, bytesPerRow) = (pixels.width, pixels.height, pixels.type, pixels.bytesPerRow)
        (memory, length) = (pixels.memory, pixels.length)
        self.texture = texture
    }

    deinit { if texture == nil { memory.deallocate() } }
}

/// Of Apple silicon.
private let pageSize = 16384

public typealias CVImageBuffer = CVBuffer
public typealias CVPixelBuffer = CVImageBuffer

/// Formats with several planes and invalid sizes are rejected.
public func CVPixelBufferCreate(
    _ allocator: CFAllocator?, _ width: Int, _ height: Int, _ pixelFormatType: OSType,
    _ pixelBufferAttributes: CFDictionary?, _ pixelBufferOut: UnsafeMutablePointer<CVPixelBuffer?>
) -> CVReturn {
    guard width > 0, height > 0 else { return kCVReturnInvalidSize }
    guard let bytes = bytesPerPixel[pixelFormatType] else { return kCVReturnInvalidPixelFormat }
    pixelBufferOut.pointee = CVBuffer(width: width, height: height, type: pixelFormatType, bytesPerPixel: bytes)
    return kCVReturnSuccess
}

@discardableResult
public func CVPixelBufferLockBaseAddress(_ buffer: CVPixelBuffer, _ flags: CVPixelBufferLockFlags) -> CVReturn {
    buffer.locks += 1
    return kCVReturnSuccess
}

@discardableResult
public func CVPixelBufferUnlockBaseAddress(_ buffer: CVPixelBuffer, _ flags: CVPixelBufferLockFlags) -> CVReturn {
    guard buffer.locks > 0 else { return kCVReturnError }
    buffer.locks -= 1
    return kCVReturnSuccess
}

/// Returns nil unless the buffer is locked.
public func CVPixelBufferGetBaseAddress(_ buffer: CVPixelBuffer) -> UnsafeMutableRawPointer? {
    buffer.locks > 0 ? buffer.memory : nil
}

public func CVPixelBufferGetWidth(_ buffer: CVPixelBuffer) -> Int { buffer.width }
public func CVPixelBufferGetHeight(_ buffer: CVPixelBuffer) -> Int { buffer.height }
public func CVPixelBufferGetPixelFormatType(_ buffer: CVPixelBuffer) -> OSType { buffer.type }
public func CVPixelBufferGetBytesPerRow(_ buffer: CVPixelBuffer) -> Int { buffer.bytesPerRow }
public func CVPixelBufferGetDataSize(_ buffer: CVPixelBuffer) -> Int { buffer.bytesPerRow * buffer.height }
public func CVPixelBufferIsPlanar(_ buffer: CVPixelBuffer) -> Bool { false }
public func CVPixelBufferGetPlaneCount(_ buffer: CVPixelBuffer) -> Int { 0 }
