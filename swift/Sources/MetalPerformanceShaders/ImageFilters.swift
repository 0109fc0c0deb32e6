import Metal

/// Sums the pixels around each pixel, multiplied by weights in row-major order, and adds `bias`. The weights are not
/// mirrored: the first one belongs to the pixel above and to the left.
public class MPSImageConvolution: MPSUnaryImageKernel {
    public let kernelWidth: Int
    public let kernelHeight: Int
    public var bias: Float = 0
    private let weights: [Float]

    public init(device: any MTLDevice, kernelWidth: Int, kernelHeight: Int, weights: UnsafePointer<Float>) {
        precondition(
            kernelWidth % 2 == 1 && kernelHeight % 2 == 1,
            "MPSImageConvolution: the kernel's sides must be odd (got \(kernelWidth) × \(kernelHeight)).")
        (self.kernelWidth, self.kernelHeight) = (kernelWidth, kernelHeight)
        self.weights = Array(UnsafeBufferPointer(start: weights, count: kernelWidth * kernelHeight))
        super.init(device: device)
    }

    override func filter(_ pass: ImagePass) {
        encode(
            "convolve", pass, window: (kernelWidth, kernelHeight), numbers: SIMD4(bias, 0, 0, 0), weights: weights)
    }
}

/// The sum of the four neighbors minus 4 times the pixel, plus `bias`.
public class MPSImageLaplacian: MPSUnaryImageKernel {
    public var bias: Float = 0

    override func filter(_ pass: ImagePass) {
        let weights: [Float] = [0, 1, 0, 1, -4, 1, 0, 1, 0]
        encode("convolve", pass, window: (3, 3), numbers: SIMD4(bias, 0, 0, 0), weights: weights)
    }
}

/// A filter that sums along rows, then along columns.
public class MPSSeparableFilter: MPSUnaryImageKernel {
    var rowWeights: [Float] { [1] }
    var columnWeights: [Float] { [1] }

    override func filter(_ pass: ImagePass) {
        let rows = rowWeights, columns = columnWeights, radius = columns.count / 2
        let size = pass.part.size, height = size.height + 2 * radius
        let descriptor = MTLTextureDescriptor.texture2DDescriptor(
            pixelFormat: .rgba32Float, width: max(size.width, 1), height: max(height, 1), mipmapped: false)
        (descriptor.usage, descriptor.storageMode) = ([.shaderRead, .shaderWrite], .private)
        guard size.width > 0, let between = device.makeTexture(descriptor: descriptor) else { return }
        let all = MTLRegionMake2D(0, 0, size.width, height)
        encode(
            "convolveRows", ImagePass(to: pass.commandBuffer, from: pass.source, to: between, all),
            window: (rows.count, columns.count), weights: rows)
        encode(
            "convolveColumns", ImagePass(to: pass.commandBuffer, from: between, to: pass.destination, pass.part),
            window: (1, columns.count), weights: columns)
    }
}

/// The mean of the pixels around each pixel.
public class MPSImageBox: MPSSeparableFilter {
    public let kernelWidth: Int
    public let kernelHeight: Int

    public init(device: any MTLDevice, kernelWidth: Int, kernelHeight: Int) {
        precondition(
            kernelWidth % 2 == 1 && kernelHeight % 2 == 1,
            "\(Self.self): the kernel's sides must be odd (got \(kernelWidth) × \(kernelHeight)).")
        (self.kernelWidth, self.kernelHeight) = (kernelWidth, kernelHeight)
        super.init(device: device)
    }

    func weights(_ count: Int) -> [Float] { [Float](repeating: 1 / Float(count), count: count) }
    override var rowWeights: [Float] { weights(kernelWidth) }
    override var columnWeights: [Float] { weights(kernelHeight) }
}

/// Like `MPSImageBox`, with weights that are largest at the center: 1 2 3 2 1.
public class MPSImageTent: MPSImageBox {
    override func weights(_ count: Int) -> [Float] {
        let half = count / 2 + 1
        return (0..<count).map { Float(half - abs($0 + 1 - half)) / Float(half * half) }
    }
}

/// Weights exp(-i² / 2 sigma²), divided by their sum, up to a distance of 3.7 sigma, where Apple's approximation ends.
public class MPSImageGaussianBlur: MPSSeparableFilter {
    public let sigma: Float

    public init(device: any MTLDevice, sigma: Float) {
        self.sigma = sigma
        super.init(device: device)
    }

    override var rowWeights: [Float] {
        let radius = Int((3.7 * max(sigma, 0)).rounded(.up))
        let terms = (-radius...radius).map { exp(-Double($0 * $0) / (2 * Double(max(sigma, 1e-6) * max(sigma, 1e-6)))) }
        let sum = terms.reduce(0, +)
        return terms.map { Float($0 / sum) }
    }
    override var columnWeights: [Float] { rowWeights }
}

/// A filter that turns colors to gray, by default with the weights of BT.601.
public class MPSGrayFilter: MPSUnaryImageKernel {
    private let storage: UnsafeMutablePointer<Float>

    public init(device: any MTLDevice, linearGrayColorTransform transform: UnsafePointer<Float>?) {
        storage = UnsafeMutablePointer<Float>.allocate(capacity: 3)
        for (index, value) in ([0.299, 0.587, 0.114] as [Float]).enumerated() {
            storage[index] = transform?[index] ?? value
        }
        super.init(device: device)
    }

    deinit { storage.deallocate() }

    var gray: [Float] { [storage[0], storage[1], storage[2]] }
    var transformPointer: UnsafePointer<Float> { UnsafePointer(storage) }
}

/// √(h² + v²), where h and v are the differences of Sobel's filter. If the result has one channel, the source is
/// converted to gray first.
public class MPSImageSobel: MPSGrayFilter {
    public convenience init(device: any MTLDevice) { self.init(device: device, linearGrayColorTransform: nil) }
    public override init(device: any MTLDevice, linearGrayColorTransform transform: UnsafePointer<Float>?) {
        super.init(device: device, linearGrayColorTransform: transform)
    }
    public var colorTransform: UnsafePointer<Float> { transformPointer }

    override func filter(_ pass: ImagePass) {
        let isGray: Float = isMonochrome(pass.source.pixelFormat) ? 1 : 0
        encode("sobel", pass, window: (3, 3), numbers: SIMD4(isGray, 0, 0, 0), weights: gray)
    }
}

/// Compares each pixel with a threshold. A source with several channels is converted to gray first.
public class MPSThresholdFilter: MPSGrayFilter {
    public let thresholdValue: Float
    let largest: Float
    var kind: Float { 0 }

    init(_ device: any MTLDevice, _ threshold: Float, _ largest: Float, _ transform: UnsafePointer<Float>?) {
        (thresholdValue, self.largest) = (threshold, largest)
        super.init(device: device, linearGrayColorTransform: transform)
    }

    public var transform: UnsafePointer<Float> { transformPointer }

    override func filter(_ pass: ImagePass) {
        let isGray: Float = isMonochrome(pass.source.pixelFormat) ? 1 : 0
        encode("threshold", pass, numbers: SIMD4(thresholdValue, largest, kind, isGray), weights: gray)
    }
}

/// The maximum where a pixel exceeds the threshold, else 0.
public class MPSImageThresholdBinary: MPSThresholdFilter {
    public init(
        device: any MTLDevice, thresholdValue: Float, maximumValue: Float,
        linearGrayColorTransform transform: UnsafePointer<Float>?
    ) { super.init(device, thresholdValue, maximumValue, transform) }
    public var maximumValue: Float { largest }
}

/// 0 where a pixel exceeds the threshold, else the maximum.
public class MPSImageThresholdBinaryInverse: MPSThresholdFilter {
    public init(
        device: any MTLDevice, thresholdValue: Float, maximumValue: Float,
        linearGrayColorTransform transform: UnsafePointer<Float>?
    ) { super.init(device, thresholdValue, maximumValue, transform) }
    public var maximumValue: Float { largest }
    override var kind: Float { 1 }
}

/// The threshold where a pixel exceeds it, else the pixel.
public class MPSImageThresholdTruncate: MPSThresholdFilter {
    public init(
        device: any MTLDevice, thresholdValue: Float, linearGrayColorTransform transform: UnsafePointer<Float>?
    ) { super.init(device, thresholdValue, 0, transform) }
    override var kind: Float { 2 }
}

/// The pixel if it exceeds the threshold, else 0.
public class MPSImageThresholdToZero: MPSThresholdFilter {
    public init(
        device: any MTLDevice, thresholdValue: Float, linearGrayColorTransform transform: UnsafePointer<Float>?
    ) { super.init(device, thresholdValue, 0, transform) }
    override var kind: Float { 3 }
}

/// 0 where a pixel exceeds the threshold, else the pixel.
public class MPSImageThresholdToZeroInverse: MPSThresholdFilter {
    public init(
        device: any MTLDevice, thresholdValue: Float, linearGrayColorTransform transform: UnsafePointer<Float>?
    ) { super.init(device, thresholdValue, 0, transform) }
    override var kind: Float { 4 }
}

/// The median of each channel in a square around each pixel. Edges continue, whatever the edge mode.
public class MPSImageMedian: MPSUnaryImageKernel {
    public let kernelDiameter: Int

    public init(device: any MTLDevice, kernelDiameter: Int) {
        precondition(
            kernelDiameter % 2 == 1 && (3...9).contains(kernelDiameter),
            "MPSImageMedian: the diameter must be odd, from 3 to 9 (got \(kernelDiameter)).")
        self.kernelDiameter = kernelDiameter
        super.init(device: device)
    }

    public class func maxKernelDiameter() -> Int { 9 }
    public class func minKernelDiameter() -> Int { 3 }

    override func filter(_ pass: ImagePass) {
        encode("median", pass, window: (kernelDiameter, kernelDiameter), edge: .clamp)
    }
}

/// The largest value of each channel in a rectangle around each pixel. Edges continue, whatever the edge mode.
public class MPSImageAreaMax: MPSUnaryImageKernel {
    public let kernelWidth: Int
    public let kernelHeight: Int
    var sign: Float { 1 }
    /// The values that are subtracted from the pixels of the rectangle.
    var probe: [Float] { [Float](repeating: 0, count: kernelWidth * kernelHeight) }

    public init(device: any MTLDevice, kernelWidth: Int, kernelHeight: Int) {
        precondition(
            kernelWidth % 2 == 1 && kernelHeight % 2 == 1,
            "\(Self.self): the kernel's sides must be odd (got \(kernelWidth) × \(kernelHeight)).")
        (self.kernelWidth, self.kernelHeight) = (kernelWidth, kernelHeight)
        super.init(device: device)
    }

    override func filter(_ pass: ImagePass) {
        encode(
            "extreme", pass, window: (kernelWidth, kernelHeight), numbers: SIMD4(sign, 0, 0, 0), weights: probe,
            edge: .clamp)
    }
}

/// The smallest value of each channel in a rectangle around each pixel.
public class MPSImageAreaMin: MPSImageAreaMax {
    override var sign: Float { -1 }
}

/// The largest difference between a pixel and the probe's value at its position.
public class MPSImageDilate: MPSImageAreaMax {
    private let values: [Float]
    override var probe: [Float] { values }

    public init(device: any MTLDevice, kernelWidth: Int, kernelHeight: Int, values: UnsafePointer<Float>) {
        self.values = Array(UnsafeBufferPointer(start: values, count: kernelWidth * kernelHeight))
        super.init(device: device, kernelWidth: kernelWidth, kernelHeight: kernelHeight)
    }
}

/// The smallest sum of a pixel and the probe's value at its position.
public class MPSImageErode: MPSImageDilate {
    override var sign: Float { -1 }
}

/// Exchanges rows and columns.
public class MPSImageTranspose: MPSUnaryImageKernel {
    override func filter(_ pass: ImagePass) { encode("transpose", pass) }
}
