// This CoreVideo has only pixel buffers, in the process's memory, for compute programs to fill and read.
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

public let kCVPixelFormatType_420YpCbCr8BiPlanarVideoRange = format("420v")
public let kCVPixelFormatType_420YpCbCr8BiPlanarFullRange = format("420f")
public let kCVPixelFormatType_420YpCbCr10BiPlanarVideoRange = format("x420")
public let kCVPixelFormatType_420YpCbCr10BiPlanarFullRange = format("xf20")
public let kCVPixelFormatType_444YpCbCr8BiPlanarFullRange = format("444f")

/// The bytes per pixel of each plane, and the factor by which planes after the first are smaller.
struct PixelFormat {
    let bytes: [Int]
    var shrink = 1

    static let all: [OSType: PixelFormat] = [
        kCVPixelFormatType_32BGRA: PixelFormat(bytes: [4]), kCVPixelFormatType_32RGBA: PixelFormat(bytes: [4]),
        kCVPixelFormatType_32ARGB: PixelFormat(bytes: [4]), kCVPixelFormatType_OneComponent8: PixelFormat(bytes: [1]),
        kCVPixelFormatType_OneComponent16Half: PixelFormat(bytes: [2]),
        kCVPixelFormatType_OneComponent32Float: PixelFormat(bytes: [4]),
        kCVPixelFormatType_TwoComponent8: PixelFormat(bytes: [2]),
        kCVPixelFormatType_TwoComponent16Half: PixelFormat(bytes: [4]),
        kCVPixelFormatType_TwoComponent32Float: PixelFormat(bytes: [8]),
        kCVPixelFormatType_64RGBAHalf: PixelFormat(bytes: [8]),
        kCVPixelFormatType_128RGBAFloat: PixelFormat(bytes: [16]),
        kCVPixelFormatType_420YpCbCr8BiPlanarVideoRange: PixelFormat(bytes: [1, 2], shrink: 2),
        kCVPixelFormatType_420YpCbCr8BiPlanarFullRange: PixelFormat(bytes: [1, 2], shrink: 2),
        kCVPixelFormatType_420YpCbCr10BiPlanarVideoRange: PixelFormat(bytes: [2, 4], shrink: 2),
        kCVPixelFormatType_420YpCbCr10BiPlanarFullRange: PixelFormat(bytes: [2, 4], shrink: 2),
        kCVPixelFormatType_444YpCbCr8BiPlanarFullRange: PixelFormat(bytes: [1, 2]),
    ]
}

/// A plane of a pixel buffer. It begins at a page, so that a texture may share it; rows begin at multiples of 64 bytes.
struct Plane {
    let width: Int
    let height: Int
    let bytesPerPixel: Int
    let bytesPerRow: Int
    let start: Int
    /// The length of its memory in bytes: whole pages, since a Metal buffer that shares it requires them.
    let length: Int

    static func all(_ format: PixelFormat, width: Int, height: Int) -> [Plane] {
        var start = 0
        return format.bytes.enumerated().map { index, bytes in
            let shrink = index == 0 ? 1 : format.shrink
            let columns = (width + shrink - 1) / shrink, rows = (height + shrink - 1) / shrink
            let bytesPerRow = (columns * bytes + 63) / 64 * 64
            let length = (bytesPerRow * rows + pageSize - 1) / pageSize * pageSize
            defer { start += length }
            return Plane(
                width: columns, height: rows, bytesPerPixel: bytes, bytesPerRow: bytesPerRow, start: start,
                length: length)
        }
    }
}

public struct CVPixelBufferLockFlags: OptionSet, Sendable {
    public let rawValue: CVOptionFlags
    public init(rawValue: CVOptionFlags) { self.rawValue = rawValue }
    public static let readOnly = CVPixelBufferLockFlags(rawValue: 1)
}

/// A pixel buffer, or a texture of one of its planes, which shares the memory.
public final class CVBuffer {
    let width: Int
    let height: Int
    let type: OSType
    let planes: [Plane]
    let memory: UnsafeMutableRawPointer
    let texture: CVTexture?
    fileprivate var locks = 0
    fileprivate var attachments: [CFString: CFTypeRef] = [:]
    private let release: (() -> Void)?

    fileprivate init(width: Int, height: Int, type: OSType, format: PixelFormat) {
        (self.width, self.height, self.type) = (width, height, type)
        planes = Plane.all(format, width: width, height: height)
        let length = planes.last!.start + planes.last!.length
        let memory = UnsafeMutableRawPointer.allocate(byteCount: length, alignment: pageSize)
        memory.initializeMemory(as: UInt8.self, repeating: 0, count: length)
        self.memory = memory
        (texture, release) = (nil, { memory.deallocate() })
    }

    /// Uses the caller's memory.
    fileprivate init(
        width: Int, height: Int, type: OSType, bytesPerPixel: Int, memory: UnsafeMutableRawPointer, bytesPerRow: Int,
        release: @escaping () -> Void
    ) {
        (self.width, self.height, self.type, self.memory) = (width, height, type, memory)
        planes = [
            Plane(
                width: width, height: height, bytesPerPixel: bytesPerPixel, bytesPerRow: bytesPerRow, start: 0,
                length: bytesPerRow * height)
        ]
        (texture, self.release) = (nil, release)
    }

    init(texture: CVTexture) {
        let pixels = texture.pixels
        (width, height, type, planes) = (pixels.width, pixels.height, pixels.type, pixels.planes)
        (memory, self.texture, release) = (pixels.memory, texture, nil)
    }

    deinit { release?() }
}

/// The page size of Apple silicon.
let pageSize = 16384

public typealias CVImageBuffer = CVBuffer
public typealias CVPixelBuffer = CVImageBuffer
public typealias CVPixelBufferReleaseBytesCallback =
    @convention(c) (UnsafeMutableRawPointer?, UnsafeRawPointer?) -> Void

/// Unknown formats and invalid sizes are rejected.
@discardableResult
public func CVPixelBufferCreate(
    _ allocator: CFAllocator?, _ width: Int, _ height: Int, _ pixelFormatType: OSType,
    _ pixelBufferAttributes: CFDictionary?, _ pixelBufferOut: UnsafeMutablePointer<CVPixelBuffer?>
) -> CVReturn {
    guard width > 0, height > 0 else { return kCVReturnInvalidSize }
    guard let format = PixelFormat.all[pixelFormatType] else { return kCVReturnInvalidPixelFormat }
    pixelBufferOut.pointee = CVBuffer(width: width, height: height, type: pixelFormatType, format: format)
    return kCVReturnSuccess
}

/// Makes a pixel buffer with one plane from the caller's memory.
@discardableResult
public func CVPixelBufferCreateWithBytes(
    _ allocator: CFAllocator?, _ width: Int, _ height: Int, _ pixelFormatType: OSType,
    _ baseAddress: UnsafeMutableRawPointer, _ bytesPerRow: Int, _ releaseCallback: CVPixelBufferReleaseBytesCallback?,
    _ releaseRefCon: UnsafeMutableRawPointer?, _ pixelBufferAttributes: CFDictionary?,
    _ pixelBufferOut: UnsafeMutablePointer<CVPixelBuffer?>
) -> CVReturn {
    guard let format = PixelFormat.all[pixelFormatType], format.bytes.count == 1 else {
        return kCVReturnInvalidPixelFormat
    }
    guard width > 0, height > 0, bytesPerRow >= width * format.bytes[0] else { return kCVReturnInvalidSize }
    pixelBufferOut.pointee = CVBuffer(
        width: width, height: height, type: pixelFormatType, bytesPerPixel: format.bytes[0], memory: baseAddress,
        bytesPerRow: bytesPerRow, release: { releaseCallback?(releaseRefCon, baseAddress) })
    return kCVReturnSuccess
}

/// Creates pixel buffers with equal attributes; it does not cache them.
public final class CVPixelBufferPool: @unchecked Sendable {
    fileprivate let attributes: CFDictionary
    fileprivate init(_ attributes: CFDictionary) { self.attributes = attributes }
}

@discardableResult
public func CVPixelBufferPoolCreate(
    _ allocator: CFAllocator?, _ poolAttributes: CFDictionary?, _ pixelBufferAttributes: CFDictionary?,
    _ poolOut: UnsafeMutablePointer<CVPixelBufferPool?>
) -> CVReturn {
    guard let pixelBufferAttributes else { return kCVReturnInvalidArgument }
    poolOut.pointee = CVPixelBufferPool(pixelBufferAttributes)
    return kCVReturnSuccess
}

@discardableResult
public func CVPixelBufferPoolCreatePixelBuffer(
    _ allocator: CFAllocator?, _ pool: CVPixelBufferPool, _ pixelBufferOut: UnsafeMutablePointer<CVPixelBuffer?>
) -> CVReturn {
    func number(_ key: CFString) -> Int {
        let value = pool.attributes[key]
        return (value as? any BinaryInteger).map { Int($0) } ?? (value as? NSNumber)?.intValue ?? 0
    }
    return CVPixelBufferCreate(
        allocator, number(kCVPixelBufferWidthKey), number(kCVPixelBufferHeightKey),
        OSType(truncatingIfNeeded: number(kCVPixelBufferPixelFormatTypeKey)), nil, pixelBufferOut)
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

/// Returns nil unless the buffer is locked.
public func CVPixelBufferGetBaseAddressOfPlane(_ buffer: CVPixelBuffer, _ plane: Int) -> UnsafeMutableRawPointer? {
    buffer.locks > 0 && buffer.planes.indices.contains(plane) ? buffer.memory + buffer.planes[plane].start : nil
}

public func CVPixelBufferGetWidth(_ buffer: CVPixelBuffer) -> Int { buffer.width }
public func CVPixelBufferGetHeight(_ buffer: CVPixelBuffer) -> Int { buffer.height }
public func CVPixelBufferGetPixelFormatType(_ buffer: CVPixelBuffer) -> OSType { buffer.type }
public func CVPixelBufferGetBytesPerRow(_ buffer: CVPixelBuffer) -> Int { buffer.planes[0].bytesPerRow }
public func CVPixelBufferGetDataSize(_ buffer: CVPixelBuffer) -> Int {
    buffer.planes.reduce(0) { $0 + $1.bytesPerRow * $1.height }
}
public func CVPixelBufferIsPlanar(_ buffer: CVPixelBuffer) -> Bool { buffer.planes.count > 1 }
/// Returns 0 for a buffer that is not planar.
public func CVPixelBufferGetPlaneCount(_ buffer: CVPixelBuffer) -> Int {
    buffer.planes.count > 1 ? buffer.planes.count : 0
}

private func plane(_ buffer: CVPixelBuffer, _ index: Int) -> Plane? {
    buffer.planes.indices.contains(index) ? buffer.planes[index] : nil
}
public func CVPixelBufferGetWidthOfPlane(_ buffer: CVPixelBuffer, _ index: Int) -> Int {
    plane(buffer, index)?.width ?? 0
}
public func CVPixelBufferGetHeightOfPlane(_ buffer: CVPixelBuffer, _ index: Int) -> Int {
    plane(buffer, index)?.height ?? 0
}
public func CVPixelBufferGetBytesPerRowOfPlane(_ buffer: CVPixelBuffer, _ index: Int) -> Int {
    plane(buffer, index)?.bytesPerRow ?? 0
}

// MARK: attachments, which only the program reads

public enum CVAttachmentMode: UInt32, Sendable {
    case shouldNotPropagate = 0
    case shouldPropagate = 1
}

public let kCVImageBufferYCbCrMatrixKey: CFString = "CVImageBufferYCbCrMatrix"
public let kCVImageBufferYCbCrMatrix_ITU_R_709_2: CFString = "ITU_R_709_2"
public let kCVImageBufferYCbCrMatrix_ITU_R_601_4: CFString = "ITU_R_601_4"
public let kCVImageBufferYCbCrMatrix_ITU_R_2020: CFString = "ITU_R_2020"
public let kCVImageBufferColorPrimariesKey: CFString = "CVImageBufferColorPrimaries"
public let kCVImageBufferColorPrimaries_ITU_R_709_2: CFString = "ITU_R_709_2"
public let kCVImageBufferColorPrimaries_P3_D65: CFString = "P3_D65"
public let kCVImageBufferColorPrimaries_ITU_R_2020: CFString = "ITU_R_2020"
public let kCVImageBufferTransferFunctionKey: CFString = "CVImageBufferTransferFunction"
public let kCVImageBufferTransferFunction_ITU_R_709_2: CFString = "ITU_R_709_2"
public let kCVImageBufferTransferFunction_sRGB: CFString = "IEC_sRGB"
public let kCVImageBufferTransferFunction_Linear: CFString = "Linear"
public let kCVImageBufferTransferFunction_SMPTE_ST_2084_PQ: CFString = "SMPTE_ST_2084_PQ"
public let kCVImageBufferTransferFunction_ITU_R_2100_HLG: CFString = "ITU_R_2100_HLG"
public let kCVImageBufferCGColorSpaceKey: CFString = "CGColorSpace"
public let kCVImageBufferChromaLocationTopFieldKey: CFString = "CVImageBufferChromaLocationTopField"
public let kCVImageBufferChromaLocation_Left: CFString = "Left"
public let kCVImageBufferChromaLocation_Center: CFString = "Center"
public let kCVPixelBufferPoolMinimumBufferCountKey: CFString = "MinimumBufferCount"
public let kCVPixelBufferPoolMaximumBufferAgeKey: CFString = "MaximumBufferAge"
public let kCVPixelBufferCGImageCompatibilityKey: CFString = "CGImageCompatibility"
public let kCVPixelBufferCGBitmapContextCompatibilityKey: CFString = "CGBitmapContextCompatibility"
public let kCVPixelBufferBytesPerRowAlignmentKey: CFString = "BytesPerRowAlignment"

public func CVBufferSetAttachment(_ buffer: CVBuffer, _ key: CFString, _ value: Any, _ mode: CVAttachmentMode) {
    buffer.attachments[key] = value as AnyObject
}
public func CVBufferCopyAttachment(
    _ buffer: CVBuffer, _ key: CFString, _ mode: UnsafeMutablePointer<CVAttachmentMode>?
) -> CFTypeRef? {
    mode?.pointee = .shouldPropagate
    return buffer.attachments[key]
}
public func CVBufferRemoveAttachment(_ buffer: CVBuffer, _ key: CFString) { buffer.attachments[key] = nil }
