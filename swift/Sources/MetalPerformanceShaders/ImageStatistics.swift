import Metal

/// Reduces an image to one or two pixels, by channel, over `clipRectSource`.
public class MPSStatisticsFilter: MPSUnaryImageKernel {
    public var clipRectSource = MPSRectNoClip
    var kind: Float { 0 }
    var count: Int { 1 }

    override func filter(_ pass: ImagePass) {
        let region = clipped(pass.source, clipRectSource), (x, y) = (pass.part.origin.x, pass.part.origin.y)
        check(pass.part.size.width >= count, "the result must be \(count) pixels wide (got \(pass.part.size.width)).")
        let part = MTLRegionMake2D(x, y, count, min(pass.part.size.height, 1))
        let numbers = [region.origin.x, region.origin.y, region.size.width, region.size.height].map(Float.init)
        encode(
            "statistics", ImagePass(to: pass.commandBuffer, from: pass.source, to: pass.destination, part),
            numbers: SIMD4(kind, 0, 0, 0), weights: numbers)
    }
}

/// The mean, in one pixel.
public class MPSImageStatisticsMean: MPSStatisticsFilter {}

/// The mean in the first pixel, the variance in the second.
public class MPSImageStatisticsMeanAndVariance: MPSStatisticsFilter {
    override var kind: Float { 1 }
    override var count: Int { 2 }
}

/// The smallest value of each channel in the first pixel, the largest in the second.
public class MPSImageStatisticsMinAndMax: MPSStatisticsFilter {
    override var kind: Float { 2 }
    override var count: Int { 2 }
}

public struct MPSImageHistogramInfo: Sendable {
    public var numberOfHistogramEntries: Int
    public var histogramForAlpha: ObjCBool
    public var minPixelValue: SIMD4<Float>
    public var maxPixelValue: SIMD4<Float>

    public init(
        numberOfHistogramEntries: Int, histogramForAlpha: ObjCBool, minPixelValue: SIMD4<Float>,
        maxPixelValue: SIMD4<Float>
    ) {
        (self.numberOfHistogramEntries, self.histogramForAlpha) = (numberOfHistogramEntries, histogramForAlpha)
        (self.minPixelValue, self.maxPixelValue) = (minPixelValue, maxPixelValue)
    }
}

/// Counts the values of each channel: the counts of red, then those of green, blue and, if requested, alpha.
public class MPSImageHistogram: MPSKernel {
    public var clipRectSource = MPSRectNoClip
    public var zeroHistogram = true
    public var minPixelThresholdValue = SIMD4<Float>()
    public let histogramInfo: MPSImageHistogramInfo

    public init(device: any MTLDevice, histogramInfo: UnsafePointer<MPSImageHistogramInfo>) {
        self.histogramInfo = histogramInfo.pointee
        super.init(device: device)
    }

    public func histogramSize(forSourceFormat format: MTLPixelFormat) -> Int {
        4 * histogramInfo.numberOfHistogramEntries * channels(of: format)
    }

    private func channels(of format: MTLPixelFormat) -> Int {
        isMonochrome(format) ? 1 : histogramInfo.histogramForAlpha.boolValue ? 4 : 3
    }

    public func encode(
        to commandBuffer: any MTLCommandBuffer, sourceTexture: any MTLTexture, histogram: any MTLBuffer,
        histogramOffset: Int
    ) {
        let region = clipped(sourceTexture, clipRectSource), count = channels(of: sourceTexture.pixelFormat)
        if zeroHistogram {
            let blit = commandBuffer.makeBlitCommandEncoder()!
            let length = histogramSize(forSourceFormat: sourceTexture.pixelFormat)
            blit.fill(buffer: histogram, range: histogramOffset..<histogramOffset + length, value: 0)
            blit.endEncoding()
        }
        let encoder = commandBuffer.makeComputeCommandEncoder()!
        encoder.setComputePipelineState(imagePipeline("histogram"))
        encoder.setTexture(sourceTexture, index: 0)
        var parameters = HistogramParameters(
            origin: SIMD2(Int32(region.origin.x), Int32(region.origin.y)),
            entries: UInt32(histogramInfo.numberOfHistogramEntries), channels: UInt32(count),
            low: histogramInfo.minPixelValue, high: histogramInfo.maxPixelValue, threshold: minPixelThresholdValue)
        encoder.setBytes(&parameters, length: MemoryLayout<HistogramParameters>.stride, index: 0)
        encoder.setBuffer(histogram, offset: histogramOffset, index: 1)
        encoder.dispatchThreads(region.size, threadsPerThreadgroup: MTLSizeMake(32, 1, 1))
        encoder.endEncoding()
    }
}

private struct HistogramParameters {
    var origin: SIMD2<Int32>
    var entries, channels: UInt32
    var low, high, threshold: SIMD4<Float>
}
