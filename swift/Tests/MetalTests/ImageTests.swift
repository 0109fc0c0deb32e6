import CoreGraphics
import ImageIO
import MetalKit
import OrchardSwiftUI
import UniformTypeIdentifiers
import XCTest

/// Images in memory: pixel layouts, drawing, PNG files, and textures made from them.
final class ImageTests: MetalTestCase {
    private var draws = Draws(state: 77)

    private func bytes(_ count: Int) -> [UInt8] { (0..<count).map { _ in UInt8((draws.number() + 2) * 63) } }

    private func image(
        _ bytes: [UInt8], width: Int, bits: Int = 8, pixelBytes: Int = 4, _ info: UInt32,
        space: CGColorSpace = CGColorSpaceCreateDeviceRGB()
    ) throws -> CGImage {
        let provider = try XCTUnwrap(CGDataProvider(data: Data(bytes) as CFData))
        return try XCTUnwrap(
            CGImage(
                width: width, height: bytes.count / (width * pixelBytes), bitsPerComponent: bits,
                bitsPerPixel: 8 * pixelBytes, bytesPerRow: width * pixelBytes, space: space,
                bitmapInfo: CGBitmapInfo(rawValue: info), provider: provider, decode: nil, shouldInterpolate: false,
                intent: .defaultIntent))
    }

    private func bitmap(
        _ width: Int, _ height: Int, _ alpha: CGImageAlphaInfo = .premultipliedLast
    ) throws -> CGContext {
        try XCTUnwrap(
            CGContext(
                data: nil, width: width, height: height, bitsPerComponent: 8, bytesPerRow: 4 * width,
                space: CGColorSpaceCreateDeviceRGB(), bitmapInfo: alpha.rawValue))
    }

    private func pixels(_ context: CGContext) -> [UInt8] {
        let start = context.data!.assumingMemoryBound(to: UInt8.self)
        return Array(UnsafeBufferPointer(start: start, count: context.bytesPerRow * context.height))
    }

    func testOpaqueImagesKeepTheirPixels() throws {
        let given = bytes(5 * 3 * 4), context = try bitmap(5, 3, .noneSkipLast)
        let picture = try image(given, width: 5, CGImageAlphaInfo.noneSkipLast.rawValue)
        context.draw(picture, in: CGRect(x: 0, y: 0, width: 5, height: 3))
        let drawn = pixels(context)
        for i in given.indices where i % 4 != 3 { XCTAssertEqual(drawn[i], given[i], "\(i)") }
        XCTAssertEqual(try XCTUnwrap(context.makeImage()?.dataProvider?.data), Data(drawn))
    }

    /// Every layout of a pixel's components is read as the same color.
    func testLayouts() throws {
        let (r, g, b, a): (UInt8, UInt8, UInt8, UInt8) = (200, 100, 50, 255)
        let little = CGBitmapInfo.byteOrder32Little.rawValue
        let layouts: [([UInt8], UInt32)] = [
            ([r, g, b, a], CGImageAlphaInfo.premultipliedLast.rawValue),
            ([a, r, g, b], CGImageAlphaInfo.premultipliedFirst.rawValue),
            ([b, g, r, a], CGImageAlphaInfo.premultipliedFirst.rawValue | little),
            ([b, g, r, 9], CGImageAlphaInfo.noneSkipFirst.rawValue | little),
            ([a, b, g, r], CGImageAlphaInfo.premultipliedLast.rawValue | little),
            ([r, g, b, a], CGImageAlphaInfo.last.rawValue), ([a, r, g, b], CGImageAlphaInfo.first.rawValue),
        ]
        for (pixel, info) in layouts {
            let context = try bitmap(1, 1)
            context.draw(try image(pixel, width: 1, info), in: CGRect(x: 0, y: 0, width: 1, height: 1))
            XCTAssertEqual(pixels(context), [r, g, b, a], "\(info)")
        }
        let context = try bitmap(1, 1)
        let floats: [Float] = [0.5, 0.25, 1, 1], info = CGBitmapInfo.floatComponents.rawValue | little
        let float = floats.withUnsafeBytes { Array($0) }
        context.draw(
            try image(float, width: 1, bits: 32, pixelBytes: 16, info | CGImageAlphaInfo.premultipliedLast.rawValue),
            in: CGRect(x: 0, y: 0, width: 1, height: 1))
        XCTAssertEqual(pixels(context), [128, 64, 255, 255])
    }

    /// An image with transparent pixels over a color: source + destination · (1 - alpha), in float64.
    func testAlphaIsBlended() throws {
        let given = bytes(16 * 4), context = try bitmap(16, 1)
        context.setFillColor(red: 0.2, green: 0.4, blue: 0.6, alpha: 1)
        context.fill(CGRect(x: 0, y: 0, width: 16, height: 1))
        let before = pixels(context)
        XCTAssertEqual(Array(before[..<4]), [51, 102, 153, 255])
        context.draw(
            try image(given, width: 16, CGImageAlphaInfo.last.rawValue), in: CGRect(x: 0, y: 0, width: 16, height: 1))
        let after = pixels(context)
        for i in 0..<16 {
            let alpha = Double(given[4 * i + 3]) / 255
            for c in 0..<3 {
                let expected = Double(given[4 * i + c]) * alpha + Double(before[c]) * (1 - alpha)
                XCTAssertEqual(Double(after[4 * i + c]), expected, accuracy: 0.51)
            }
            XCTAssertEqual(after[4 * i + 3], 255)
        }
    }

    func testPlacesTransformsAndClips() throws {
        let context = try bitmap(4, 4), opaque = CGImageAlphaInfo.noneSkipLast.rawValue
        let picture = try image([255, 0, 0, 0, 0, 255, 0, 0], width: 1, opaque)  // red above green
        context.draw(picture, in: CGRect(x: 1, y: 0, width: 1, height: 2))
        context.translateBy(x: 4, y: 4)
        context.scaleBy(x: -1, y: -1)
        context.saveGState()
        context.clip(to: CGRect(x: 0, y: 0, width: 1, height: 1))
        context.draw(picture, in: CGRect(x: 0, y: 0, width: 1, height: 2))
        context.restoreGState()
        context.setFillColor(CGColor(gray: 1, alpha: 1))
        context.fill(CGRect(x: 3, y: 0, width: 1, height: 1))
        let drawn = pixels(context)
        func pixel(_ x: Int, _ row: Int) -> [UInt8] { Array(drawn[(row * 4 + x) * 4..<(row * 4 + x) * 4 + 4]) }
        XCTAssertEqual(pixel(1, 2), [255, 0, 0, 255])
        XCTAssertEqual(pixel(1, 3), [0, 255, 0, 255])
        XCTAssertEqual(pixel(3, 0), [0, 255, 0, 255])
        XCTAssertEqual(pixel(3, 1), [0, 0, 0, 0])
        XCTAssertEqual(pixel(0, 0), [255, 255, 255, 255])
    }

    func testScaledImages() throws {
        let opaque = CGImageAlphaInfo.noneSkipLast.rawValue
        let picture = try image([0, 0, 0, 0, 100, 100, 100, 0, 200, 200, 200, 0, 40, 40, 40, 0], width: 4, opaque)
        let half = try bitmap(2, 1)
        half.draw(picture, in: CGRect(x: 0, y: 0, width: 2, height: 1))
        XCTAssertEqual(pixels(half)[0], 50)
        XCTAssertEqual(pixels(half)[4], 120)
        let double = try bitmap(8, 1)
        double.draw(picture, in: CGRect(x: 0, y: 0, width: 8, height: 1))
        XCTAssertEqual((0..<8).map { pixels(double)[4 * $0] }, [0, 25, 75, 125, 175, 160, 80, 40])
        double.interpolationQuality = .none
        double.draw(picture, in: CGRect(x: 0, y: 0, width: 8, height: 1))
        XCTAssertEqual((0..<8).map { pixels(double)[4 * $0] }, [0, 0, 100, 100, 200, 200, 40, 40])
    }

    func testPartsAndRejectedLayouts() throws {
        let given = bytes(6 * 4 * 4), picture = try image(given, width: 6, CGImageAlphaInfo.last.rawValue)
        let part = try XCTUnwrap(picture.cropping(to: CGRect(x: 4, y: 1, width: 9, height: 2)))
        XCTAssertEqual([part.width, part.height], [2, 2])
        XCTAssertEqual(part.dataProvider?.data, Data(given[40..<48] + given[64..<72]))
        XCTAssertNil(picture.cropping(to: CGRect(x: 9, y: 9, width: 1, height: 1)))
        for (bits, alpha) in [(8, CGImageAlphaInfo.last), (8, .none), (5, .noneSkipFirst)] {
            XCTAssertNil(
                CGContext(
                    data: nil, width: 4, height: 4, bitsPerComponent: bits, bytesPerRow: 0,
                    space: CGColorSpaceCreateDeviceRGB(), bitmapInfo: alpha.rawValue))
        }
        XCTAssertNil(CGColorSpace(name: "no space"))
        XCTAssertEqual(CGColorSpace(name: CGColorSpace.linearSRGB)?.numberOfComponents, 3)
        let gray = CGColor(red: 1, green: 0, blue: 0, alpha: 0.5).converted(
            to: CGColorSpaceCreateDeviceGray(), intent: .defaultIntent, options: nil)
        XCTAssertEqual(try XCTUnwrap(gray?.components), [0.2126, 0.5])
    }

    func testColors() throws {
        let color = Color(red: 0.5, green: 0.02, blue: 1, opacity: 0.25).resolve(in: .init())
        let linear = color.cgColor.converted(
            to: try XCTUnwrap(CGColorSpace(name: CGColorSpace.genericRGBLinear)), intent: .defaultIntent, options: nil)
        let components = try XCTUnwrap(linear?.components)
        for (x, y) in zip(components, [pow(0.555 / 1.055, 2.4), 0.02 / 12.92, 1, 0.25]) {
            XCTAssertEqual(Double(x), y, accuracy: 1e-6)
        }
        XCTAssertEqual(color.linearRed, Float(components[0]), accuracy: 1e-6)
        let back = Color(cgColor: try XCTUnwrap(linear)).resolve(in: .init())
        XCTAssertEqual(back.red, 0.5, accuracy: 1e-6)
        XCTAssertEqual(Color(hue: 0.5, saturation: 1, brightness: 0.5), Color(red: 0, green: 0.5, blue: 0.5))
        XCTAssertEqual(Color.white.opacity(0.5).cgColor?.alpha, 0.5)
    }

    func testPngFiles() throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("image-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let file = folder.appendingPathComponent("picture.png")
        let given = bytes(7 * 5 * 4), picture = try image(given, width: 7, CGImageAlphaInfo.last.rawValue)
        let destination = CGImageDestinationCreateWithURL(file as CFURL, UTType.png.identifier as CFString, 1, nil)
        CGImageDestinationAddImage(try XCTUnwrap(destination), picture, nil)
        XCTAssertTrue(CGImageDestinationFinalize(destination!))
        XCTAssertNil(CGImageDestinationCreateWithURL(file, "public.jpeg", 1, nil))

        let source = try XCTUnwrap(CGImageSourceCreateWithURL(file as CFURL, nil))
        XCTAssertEqual(CGImageSourceGetType(source), "public.png")
        let read = try XCTUnwrap(CGImageSourceCreateImageAtIndex(source, 0, nil))
        let bytes = try XCTUnwrap(read.dataProvider?.data)
        // A pixel with alpha 0 has no color.
        for i in given.indices where given[i / 4 * 4 + 3] != 0 { XCTAssertEqual(bytes[i], given[i], "\(i)") }
        let properties = CGImageSourceCopyPropertiesAtIndex(source, 0, nil) as? [CFString: Any]
        XCTAssertEqual(properties?[kCGImagePropertyPixelWidth] as? Int, 7)
        let options = [kCGImageSourceThumbnailMaxPixelSize: 3] as CFDictionary
        let small = try XCTUnwrap(CGImageSourceCreateThumbnailAtIndex(source, 0, options))
        XCTAssertEqual([small.width, small.height], [3, 2])
        let text = try XCTUnwrap(CGImageSourceCreateWithData(Data("text".utf8) as CFData, nil))
        XCTAssertNil(CGImageSourceCreateImageAtIndex(text, 0, nil))
        XCTAssertEqual(CGImageSourceGetCount(text), 0)

        let texture = try MTKTextureLoader(device: device).newTexture(URL: file, options: [.SRGB: false])
        XCTAssertEqual([texture.width, texture.height], [7, 5])
        XCTAssertEqual(texture.pixelFormat, .rgba8Unorm)
    }

    func testTexturesOfImages() throws {
        let given = bytes(6 * 2 * 4), picture = try image(given, width: 6, CGImageAlphaInfo.noneSkipLast.rawValue)
        let loader = MTKTextureLoader(device: device)
        func read(_ options: [MTKTextureLoader.Option: Any]) throws -> [UInt8] {
            let texture = try loader.newTexture(cgImage: picture, options: options)
            var pixels = [UInt8](repeating: 0, count: 48)
            texture.getBytes(&pixels, bytesPerRow: 24, from: MTLRegionMake2D(0, 0, 6, 2), mipmapLevel: 0)
            return pixels
        }
        var opaque = given
        for i in stride(from: 3, to: 48, by: 4) { opaque[i] = 255 }
        XCTAssertEqual(try read([.SRGB: false]), opaque)
        let flipped = try read([.SRGB: NSNumber(value: 0), .origin: MTKTextureLoader.Origin.bottomLeft.rawValue])
        XCTAssertEqual(flipped, Array(opaque[24...] + opaque[..<24]))
        let texture = try loader.newTexture(
            cgImage: picture,
            options: [
                .textureUsage: MTLTextureUsage([.shaderRead, .shaderWrite]).rawValue, .allocateMipmaps: true,
                .textureStorageMode: NSNumber(value: MTLStorageMode.private.rawValue),
            ])
        XCTAssertEqual(texture.pixelFormat, .rgba8Unorm_srgb)
        XCTAssertEqual(texture.usage, [.shaderRead, .shaderWrite])
        XCTAssertEqual(texture.storageMode, .private)
        XCTAssertEqual(texture.mipmapLevelCount, 3)
        XCTAssertThrowsError(try loader.newTexture(cgImage: picture, options: [.generateMipmaps: true]))
        var handed: (any MTLTexture)?
        loader.newTexture(cgImage: picture) { texture, _ in handed = texture }
        XCTAssertEqual(handed?.width, 6)
        XCTAssertThrowsError(try loader.newTexture(name: "nothing", scaleFactor: 1, bundle: nil)) {
            XCTAssertEqual($0.localizedDescription, "MTKTextureLoader: the bundle has no resource nothing.png.")
        }
    }

    /// A reference that the program counts itself, to an existential and to data.
    func testUnmanagedReferences() throws {
        let buffer: any MTLBuffer = self.buffer([1, 2])
        let unmanaged = Unmanaged<any MTLBuffer>.passRetained(buffer)
        let address = unmanaged.toOpaque()
        XCTAssertEqual(address, Unmanaged<AnyObject>.passUnretained(buffer).toOpaque())
        XCTAssertTrue(Unmanaged<any MTLBuffer>.fromOpaque(address).takeUnretainedValue() === buffer)
        unmanaged.release()
        let data = Unmanaged<CFData>.passRetained(Data(bytes(40)) as CFData)
        XCTAssertEqual(CFDataGetLength(data.takeUnretainedValue()), 40)
        data.release()
        let short = Data([3, 4]) as CFData
        XCTAssertEqual([CFDataGetBytePtr(short)[0], CFDataGetBytePtr(short)[1]], [3, 4])
    }
}
