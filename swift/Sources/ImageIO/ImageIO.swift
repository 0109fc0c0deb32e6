// This ImageIO reads and writes only PNG files.
@_exported import CoreGraphics

public let kCGImagePropertyPixelWidth: CFString = "PixelWidth"
public let kCGImagePropertyPixelHeight: CFString = "PixelHeight"
public let kCGImagePropertyDepth: CFString = "Depth"
public let kCGImagePropertyHasAlpha: CFString = "HasAlpha"
public let kCGImagePropertyColorModel: CFString = "ColorModel"
public let kCGImageSourceShouldCache: CFString = "kCGImageSourceShouldCache"
public let kCGImageSourceShouldAllowFloat: CFString = "kCGImageSourceShouldAllowFloat"
public let kCGImageSourceCreateThumbnailFromImageAlways: CFString = "kCGImageSourceCreateThumbnailFromImageAlways"
public let kCGImageSourceCreateThumbnailWithTransform: CFString = "kCGImageSourceCreateThumbnailWithTransform"
public let kCGImageSourceThumbnailMaxPixelSize: CFString = "kCGImageSourceThumbnailMaxPixelSize"
public let kCGImageDestinationLossyCompressionQuality: CFString = "kCGImageDestinationLossyCompressionQuality"

private let png: CFString = "public.png"

/// The bytes of an image file.
public final class CGImageSource: @unchecked Sendable {
    fileprivate let data: Data
    fileprivate init(_ data: Data) { self.data = data }

    fileprivate lazy var image: CGImage? = {
        do { return try readPng(data) } catch {
            FileHandle.standardError.write(Data("CGImageSource: \(error)\n".utf8))
            return nil
        }
    }()
}

public func CGImageSourceCreateWithData(_ data: CFData, _ options: CFDictionary?) -> CGImageSource? {
    CGImageSource(data)
}

public func CGImageSourceCreateWithURL(_ url: CFURL, _ options: CFDictionary?) -> CGImageSource? {
    (try? Data(contentsOf: url)).map(CGImageSource.init)
}

public func CGImageSourceGetType(_ source: CGImageSource) -> CFString? {
    source.data.starts(with: pngSignature) ? png : nil
}

public func CGImageSourceGetCount(_ source: CGImageSource) -> Int { CGImageSourceGetType(source) == nil ? 0 : 1 }

/// Returns the image. If the file is not a PNG file, prints the reason to standard error and returns nil.
public func CGImageSourceCreateImageAtIndex(_ source: CGImageSource, _ index: Int, _ options: CFDictionary?) -> CGImage?
{ index == 0 ? source.image : nil }

/// Returns the image, shrunk so that neither side is longer than `kCGImageSourceThumbnailMaxPixelSize`.
public func CGImageSourceCreateThumbnailAtIndex(
    _ source: CGImageSource, _ index: Int, _ options: CFDictionary?
) -> CGImage? {
    guard let image = CGImageSourceCreateImageAtIndex(source, index, nil) else { return nil }
    let longest = CGFloat(max(image.width, image.height))
    let limit = (options?[kCGImageSourceThumbnailMaxPixelSize] as? any BinaryInteger).map { CGFloat(Int($0)) }
    guard let limit, limit > 0, limit < longest else { return image }
    let width = max((CGFloat(image.width) * limit / longest).rounded(), 1)
    let height = max((CGFloat(image.height) * limit / longest).rounded(), 1)
    let context = CGContext(
        data: nil, width: Int(width), height: Int(height), bitsPerComponent: 8, bytesPerRow: 0,
        space: CGColorSpace(name: CGColorSpace.sRGB)!, bitmapInfo: CGImageAlphaInfo.premultipliedLast.rawValue)!
    context.draw(image, in: CGRect(x: 0, y: 0, width: width, height: height))
    return context.makeImage()
}

public func CGImageSourceCopyPropertiesAtIndex(
    _ source: CGImageSource, _ index: Int, _ options: CFDictionary?
) -> CFDictionary? {
    guard let image = CGImageSourceCreateImageAtIndex(source, index, nil) else { return nil }
    return [
        kCGImagePropertyPixelWidth: image.width, kCGImagePropertyPixelHeight: image.height,
        kCGImagePropertyDepth: image.bitsPerComponent, kCGImagePropertyHasAlpha: image.alphaInfo == .last,
        kCGImagePropertyColorModel: image.colorSpace?.model == .monochrome ? "Gray" : "RGB",
    ]
}

/// Writes an image to a file, or appends it to data.
public final class CGImageDestination: @unchecked Sendable {
    fileprivate let write: (Data) throws -> Void
    fileprivate var image: CGImage?
    fileprivate init(_ write: @escaping (Data) throws -> Void) { self.write = write }
}

/// Returns nil for other types than `public.png`, and for several images.
public func CGImageDestinationCreateWithURL(
    _ url: CFURL, _ type: CFString, _ count: Int, _ options: CFDictionary?
) -> CGImageDestination? {
    type == png && count == 1 ? CGImageDestination { try $0.write(to: url) } : nil
}

/// Returns nil for other types than `public.png`, and for several images.
public func CGImageDestinationCreateWithData(
    _ data: CFMutableData, _ type: CFString, _ count: Int, _ options: CFDictionary?
) -> CGImageDestination? {
    type == png && count == 1 ? CGImageDestination { data.append($0) } : nil
}

public func CGImageDestinationAddImage(
    _ destination: CGImageDestination, _ image: CGImage, _ properties: CFDictionary?
) { destination.image = image }

public func CGImageDestinationSetProperties(_ destination: CGImageDestination, _ properties: CFDictionary?) {}

/// Returns whether the image was written. If not, prints the reason to standard error.
@discardableResult
public func CGImageDestinationFinalize(_ destination: CGImageDestination) -> Bool {
    guard let image = destination.image else { return false }
    do {
        try destination.write(writePng(image))
        return true
    } catch {
        FileHandle.standardError.write(Data("CGImageDestination: \(error)\n".utf8))
        return false
    }
}
