// The parts of vImage that compute packages use: conversions of planes, and channels of interleaved pixels. Flags have
// no effect.

public typealias vImagePixelCount = UInt
public typealias vImage_Error = Int
public typealias vImage_Flags = UInt32

public let kvImageNoError: vImage_Error = 0
public let kvImageRoiLargerThanInputBuffer: vImage_Error = -21766
public let kvImageInvalidParameter: vImage_Error = -21773
public let kvImageNoFlags: vImage_Flags = 0
public let kvImageDoNotTile: vImage_Flags = 16

/// Rows of pixels in memory.
public struct vImage_Buffer {
    public var data: UnsafeMutableRawPointer!
    public var height: vImagePixelCount
    public var width: vImagePixelCount
    public var rowBytes: Int

    public init() { (data, height, width, rowBytes) = (nil, 0, 0, 0) }
    public init(data: UnsafeMutableRawPointer!, height: vImagePixelCount, width: vImagePixelCount, rowBytes: Int) {
        (self.data, self.height, self.width, self.rowBytes) = (data, height, width, rowBytes)
    }
}

/// Calls `body` with the addresses of each pixel of both buffers, in the size of the result.
private func eachPixel(
    _ source: UnsafePointer<vImage_Buffer>, _ result: UnsafePointer<vImage_Buffer>, _ sourceBytes: Int,
    _ resultBytes: Int, _ body: (UnsafeRawPointer, UnsafeMutableRawPointer) -> Void
) -> vImage_Error {
    let (from, to) = (source.pointee, result.pointee)
    guard from.width >= to.width, from.height >= to.height else { return kvImageRoiLargerThanInputBuffer }
    for y in 0..<Int(to.height) {
        for x in 0..<Int(to.width) {
            body(
                UnsafeRawPointer(from.data + y * from.rowBytes + x * sourceBytes),
                to.data + y * to.rowBytes + x * resultBytes)
        }
    }
    return kvImageNoError
}

@discardableResult
public func vImageConvert_Planar16FtoPlanarF(
    _ src: UnsafePointer<vImage_Buffer>, _ dest: UnsafePointer<vImage_Buffer>, _ flags: vImage_Flags
) -> vImage_Error {
    eachPixel(src, dest, 2, 4) {
        $1.storeBytes(of: Float(Float16(bitPattern: $0.loadUnaligned(as: UInt16.self))), as: Float.self)
    }
}

@discardableResult
public func vImageConvert_PlanarFtoPlanar16F(
    _ src: UnsafePointer<vImage_Buffer>, _ dest: UnsafePointer<vImage_Buffer>, _ flags: vImage_Flags
) -> vImage_Error {
    eachPixel(src, dest, 4, 2) {
        $1.storeBytes(of: Float16($0.loadUnaligned(as: Float.self)).bitPattern, as: UInt16.self)
    }
}

/// Maps 0 … 255 to `minFloat` … `maxFloat`.
@discardableResult
public func vImageConvert_Planar8toPlanarF(
    _ src: UnsafePointer<vImage_Buffer>, _ dest: UnsafePointer<vImage_Buffer>, _ maxFloat: Float, _ minFloat: Float,
    _ flags: vImage_Flags
) -> vImage_Error {
    eachPixel(src, dest, 1, 4) {
        let value = Float($0.load(as: UInt8.self)) * ((maxFloat - minFloat) / 255) + minFloat
        $1.storeBytes(of: value, as: Float.self)
    }
}

/// Maps `minFloat` … `maxFloat` to 0 … 255, rounded and limited.
@discardableResult
public func vImageConvert_PlanarFtoPlanar8(
    _ src: UnsafePointer<vImage_Buffer>, _ dest: UnsafePointer<vImage_Buffer>, _ maxFloat: Float, _ minFloat: Float,
    _ flags: vImage_Flags
) -> vImage_Error {
    eachPixel(src, dest, 4, 1) {
        let value = ($0.loadUnaligned(as: Float.self) - minFloat) * (255 / (maxFloat - minFloat))
        $1.storeBytes(of: UInt8(min(max(value, 0), 255).rounded()), as: UInt8.self)
    }
}

/// Channel i of the result is channel `permuteMap[i]` of the source.
@discardableResult
public func vImagePermuteChannels_ARGB8888(
    _ src: UnsafePointer<vImage_Buffer>, _ dest: UnsafePointer<vImage_Buffer>, _ permuteMap: UnsafePointer<UInt8>,
    _ flags: vImage_Flags
) -> vImage_Error {
    let places = (0..<4).map { Int(permuteMap[$0]) }
    guard places.allSatisfy({ $0 < 4 }) else { return kvImageInvalidParameter }
    return eachPixel(src, dest, 4, 4) { from, to in
        let pixel = (0..<4).map { from.load(fromByteOffset: places[$0], as: UInt8.self) }
        for (index, value) in pixel.enumerated() { to.storeBytes(of: value, toByteOffset: index, as: UInt8.self) }
    }
}

/// Multiplies the first three channels by the fourth.
@discardableResult
public func vImagePremultiplyData_RGBA8888(
    _ src: UnsafePointer<vImage_Buffer>, _ dest: UnsafePointer<vImage_Buffer>, _ flags: vImage_Flags
) -> vImage_Error {
    eachPixel(src, dest, 4, 4) { from, to in
        let alpha = Int(from.load(fromByteOffset: 3, as: UInt8.self))
        for index in 0..<3 {
            let value = Int(from.load(fromByteOffset: index, as: UInt8.self))
            to.storeBytes(of: UInt8((value * alpha + 127) / 255), toByteOffset: index, as: UInt8.self)
        }
        to.storeBytes(of: UInt8(alpha), toByteOffset: 3, as: UInt8.self)
    }
}

/// Divides the first three channels by the fourth.
@discardableResult
public func vImageUnpremultiplyData_RGBA8888(
    _ src: UnsafePointer<vImage_Buffer>, _ dest: UnsafePointer<vImage_Buffer>, _ flags: vImage_Flags
) -> vImage_Error {
    eachPixel(src, dest, 4, 4) { from, to in
        let alpha = Int(from.load(fromByteOffset: 3, as: UInt8.self))
        for index in 0..<3 {
            let value = Int(from.load(fromByteOffset: index, as: UInt8.self))
            let straight = alpha == 0 ? 0 : min((value * 255 + alpha / 2) / alpha, 255)
            to.storeBytes(of: UInt8(straight), toByteOffset: index, as: UInt8.self)
        }
        to.storeBytes(of: UInt8(alpha), toByteOffset: 3, as: UInt8.self)
    }
}
