import Metal

public struct MPSScaleTransform: Equatable, Sendable {
    public var scaleX, scaleY, translateX, translateY: Double
    public init() { (scaleX, scaleY, translateX, translateY) = (1, 1, 0, 0) }
    public init(scaleX: Double, scaleY: Double, translateX: Double, translateY: Double) {
        (self.scaleX, self.scaleY, self.translateX, self.translateY) = (scaleX, scaleY, translateX, translateY)
    }
}

/// Scales an image to the size of the result, or by `scaleTransform`. Edges continue.
public class MPSImageScale: MPSUnaryImageKernel {
    private var copy: UnsafeMutablePointer<MPSScaleTransform>?

    /// The scale and translation that map a position in the source to the result. The value is copied.
    public var scaleTransform: UnsafePointer<MPSScaleTransform>? {
        get { copy.map { UnsafePointer($0) } }
        set {
            let value = newValue?.pointee
            copy?.deallocate()
            copy = nil
            guard let value else { return }
            copy = .allocate(capacity: 1)
            copy!.initialize(to: value)
        }
    }

    deinit { copy?.deallocate() }

    var kernel: String { "scaleLinear" }

    override func filter(_ pass: ImagePass) {
        let given = copy?.pointee
        let scaleX = given?.scaleX ?? Double(pass.destination.width) / Double(pass.source.width)
        let scaleY = given?.scaleY ?? Double(pass.destination.height) / Double(pass.source.height)
        let numbers = SIMD4(
            Float(scaleX), Float(scaleY), Float(given?.translateX ?? 0), Float(given?.translateY ?? 0))
        encode(kernel, pass, numbers: numbers, edge: .clamp)
    }
}

public class MPSImageBilinearScale: MPSImageScale {}

/// Uses Lanczos' window of three lobes, stretched where the image shrinks.
public class MPSImageLanczosScale: MPSImageScale {
    override var kernel: String { "scaleLanczos" }
}

/// A filter of two images that computes each pixel of the result from the pixels at the same position.
public class MPSBinaryImageKernel: MPSKernel {
    public var primaryOffset = MPSOffset()
    public var secondaryOffset = MPSOffset()
    public var clipRect = MPSRectNoClip
    public var primaryEdgeMode = MPSImageEdgeMode.zero
    public var secondaryEdgeMode = MPSImageEdgeMode.zero

    public func encode(
        commandBuffer: any MTLCommandBuffer, primaryTexture: any MTLTexture, secondaryTexture: any MTLTexture,
        destinationTexture: any MTLTexture
    ) {
        let part = clipped(destinationTexture, clipRect)
        let pass = ImagePass(to: commandBuffer, from: primaryTexture, to: destinationTexture, part)
        combine(pass, secondaryTexture)
    }

    public func encode(
        commandBuffer: any MTLCommandBuffer, primaryImage: MPSImage, secondaryImage: MPSImage,
        destinationImage: MPSImage
    ) {
        encode(
            commandBuffer: commandBuffer, primaryTexture: primaryImage.texture,
            secondaryTexture: secondaryImage.texture, destinationTexture: destinationImage.texture)
    }

    func combine(_ pass: ImagePass, _ second: any MTLTexture) { preconditionFailure("\(Self.self) is no filter.") }
}

/// (primaryScale · primary) op (secondaryScale · secondary) + bias, limited to `minimumValue` … `maximumValue`.
public class MPSImageArithmetic: MPSBinaryImageKernel {
    public var primaryScale: Float = 1
    public var secondaryScale: Float = 1
    public var bias: Float = 0
    public var minimumValue = -Float.greatestFiniteMagnitude
    public var maximumValue = Float.greatestFiniteMagnitude
    var operation: UInt32 { 0 }

    override func combine(_ pass: ImagePass, _ second: any MTLTexture) {
        let parameters = ArithmeticParameters(
            primary: SIMD2(Int32(primaryOffset.x), Int32(primaryOffset.y)),
            secondary: SIMD2(Int32(secondaryOffset.x), Int32(secondaryOffset.y)),
            origin: SIMD2(Int32(pass.part.origin.x), Int32(pass.part.origin.y)),
            primaryEdge: UInt32(primaryEdgeMode.rawValue), secondaryEdge: UInt32(secondaryEdgeMode.rawValue),
            scales: SIMD2(primaryScale, secondaryScale), limits: SIMD2(minimumValue, maximumValue), bias: bias,
            operation: operation)
        encodeImage("arithmetic", pass, parameters, [0], second: second)
    }
}

private struct ArithmeticParameters {
    var primary, secondary, origin: SIMD2<Int32>
    var primaryEdge, secondaryEdge: UInt32
    var scales, limits: SIMD2<Float>
    var bias: Float
    var operation: UInt32
}

public class MPSImageAdd: MPSImageArithmetic {
    public override init(device: any MTLDevice) { super.init(device: device) }
}
public class MPSImageSubtract: MPSImageArithmetic {
    public override init(device: any MTLDevice) { super.init(device: device) }
    override var operation: UInt32 { 1 }
}
public class MPSImageMultiply: MPSImageArithmetic {
    public override init(device: any MTLDevice) { super.init(device: device) }
    override var operation: UInt32 { 2 }
}
public class MPSImageDivide: MPSImageArithmetic {
    public override init(device: any MTLDevice) { super.init(device: device) }
    override var operation: UInt32 { 3 }
}
