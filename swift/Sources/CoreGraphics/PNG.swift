// PNG files, read and written by the machine's libpng (the simplified interface of libpng 1.6).
import Glibc

/// `png_image` of png.h.
private struct PngImage {
    var control: UnsafeMutableRawPointer?
    var version: UInt32 = 1
    var width: UInt32 = 0
    var height: UInt32 = 0
    var format: UInt32 = 0
    var flags: UInt32 = 0
    var colormapEntries: UInt32 = 0
    var warningOrError: UInt32 = 0
    var message: (UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0, 0, 0, 0, 0)

    static let alpha: UInt32 = 1
    static let color: UInt32 = 2
}

private typealias Image = UnsafeMutablePointer<PngImage>
private typealias BeginRead = @convention(c) (UnsafeMutableRawPointer, UnsafeRawPointer, Int) -> Int32
private typealias FinishRead =
    @convention(c) (
        UnsafeMutableRawPointer, UnsafeRawPointer?, UnsafeMutableRawPointer, Int32, UnsafeMutableRawPointer?
    ) -> Int32
private typealias Write =
    @convention(c) (
        UnsafeMutableRawPointer, UnsafeMutableRawPointer?, UnsafeMutablePointer<Int>, Int32, UnsafeRawPointer, Int32,
        UnsafeRawPointer?
    ) -> Int32
private typealias Free = @convention(c) (UnsafeMutableRawPointer) -> Void

private let library: UnsafeMutableRawPointer? = dlopen("libpng16.so.16", RTLD_NOW)

private func function<T>(_ name: String, _: T.Type) -> T? {
    guard let library, let address = dlsym(library, name) else { return nil }
    return unsafeBitCast(address, to: T.self)
}

/// The reason why an image can't be read or written.
package struct PictureError: Error, CustomStringConvertible, LocalizedError {
    package let description: String
    package var errorDescription: String? { description }
}

private let missing = PictureError(description: "PNG files require libpng: install the package libpng16-16.")

package let pngSignature: [UInt8] = [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]

/// Decodes the bytes of a PNG file to an image with 8 bits per component.
package func readPng(_ data: Data) throws -> CGImage {
    guard data.starts(with: pngSignature) else {
        throw PictureError(description: "pictures other than PNG files are not supported; convert it, or decode it.")
    }
    guard let begin = function("png_image_begin_read_from_memory", BeginRead.self),
        let finish = function("png_image_finish_read", FinishRead.self)
    else { throw missing }
    var image = PngImage()
    let isBegun = data.withUnsafeBytes { begin(&image, $0.baseAddress!, $0.count) != 0 }
    guard isBegun else { throw failure(&image) }
    let hasColor = image.format & PngImage.color != 0, hasAlpha = image.format & PngImage.alpha != 0
    let isGray = !hasColor && !hasAlpha, size = isGray ? 1 : 4
    image.format = isGray ? 0 : PngImage.alpha | PngImage.color
    let (width, height) = (Int(image.width), Int(image.height))
    var bytes = Data(count: width * height * size)
    // libpng's row stride counts components, which are bytes here.
    let isRead = data.withUnsafeBytes { _ in
        bytes.withUnsafeMutableBytes { finish(&image, nil, $0.baseAddress!, Int32(width * size), nil) != 0 }
    }
    guard isRead else { throw failure(&image) }
    let info = CGBitmapInfo(alpha: isGray ? .none : hasAlpha ? .last : .noneSkipLast)
    let space = CGColorSpace(name: isGray ? CGColorSpace.genericGrayGamma2_2 : CGColorSpace.sRGB)!
    guard
        let result = CGImage(
            width: width, height: height, bitsPerComponent: 8, bitsPerPixel: 8 * size, bytesPerRow: width * size,
            space: space, bitmapInfo: info, provider: CGDataProvider(data: bytes)!, decode: nil,
            shouldInterpolate: true, intent: .defaultIntent)
    else { throw PictureError(description: "the picture has no pixels.") }
    return result
}

/// Encodes an image as the bytes of a PNG file, with 8 bits per component.
package func writePng(_ picture: CGImage) throws -> Data {
    guard let write = function("png_image_write_to_memory", Write.self) else { throw missing }
    var pixels = [UInt8]()
    pixels.reserveCapacity(picture.width * picture.height * 4)
    picture.withPixels { pixel in
        for y in 0..<picture.height {
            for x in 0..<picture.width {
                let color = pixel(x, y), scale = color.w == 0 ? 0 : 1 / color.w
                for value in [color.x * scale, color.y * scale, color.z * scale, color.w] {
                    pixels.append(UInt8((min(max(value, 0), 1) * 255).rounded()))
                }
            }
        }
    }
    var image = PngImage()
    (image.width, image.height) = (UInt32(picture.width), UInt32(picture.height))
    image.format = PngImage.alpha | PngImage.color
    var length = 0
    let stride = Int32(picture.width * 4)
    guard write(&image, nil, &length, 0, pixels, stride, nil) != 0 else { throw failure(&image) }
    var bytes = Data(count: length)
    let isWritten = bytes.withUnsafeMutableBytes {
        write(&image, $0.baseAddress!, &length, 0, pixels, stride, nil) != 0
    }
    guard isWritten else { throw failure(&image) }
    return bytes.prefix(length)
}

private func failure(_ image: inout PngImage) -> PictureError {
    let text = withUnsafeBytes(of: image.message) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
    function("png_image_free", Free.self)?(&image)
    return PictureError(description: "libpng: \(text)")
}
