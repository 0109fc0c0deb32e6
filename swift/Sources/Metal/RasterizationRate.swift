// Rasterization rates, which this device does not support.

public class MTLRasterizationRateLayerDescriptor: NSObject, NSCopying {
    public let horizontal: [Float]
    public let vertical: [Float]
    public var maxSampleCount: MTLSize { MTLSizeMake(horizontal.count, vertical.count, 0) }
    public var sampleCount: MTLSize { maxSampleCount }

    public init(horizontal: [Float], vertical: [Float]) {
        (self.horizontal, self.vertical) = (horizontal, vertical)
    }

    public convenience init(sampleCount: MTLSize) {
        self.init(
            horizontal: [Float](repeating: 0, count: sampleCount.width),
            vertical: [Float](repeating: 0, count: sampleCount.height))
    }

    public func copy(with zone: NSZone? = nil) -> Any { self }
}

public class MTLRasterizationRateMapDescriptor: NSObject, NSCopying {
    public var screenSize = MTLSize()
    public var label: String?
    private var kept: [Int: MTLRasterizationRateLayerDescriptor] = [:]

    public var layerCount: Int { (kept.keys.max() ?? -1) + 1 }

    public convenience init(screenSize: MTLSize, label: String? = nil) {
        self.init()
        (self.screenSize, self.label) = (screenSize, label)
    }

    public func layer(at layerIndex: Int) -> MTLRasterizationRateLayerDescriptor? { kept[layerIndex] }

    public func setLayer(_ layer: MTLRasterizationRateLayerDescriptor?, at layerIndex: Int) { kept[layerIndex] = layer }

    public func copy(with zone: NSZone? = nil) -> Any {
        let copy = MTLRasterizationRateMapDescriptor(screenSize: screenSize, label: label)
        copy.kept = kept
        return copy
    }
}

public protocol MTLRasterizationRateMap: NSObjectProtocol, Sendable {
    var device: any MTLDevice { get }
    var label: String? { get }
    var screenSize: MTLSize { get }
    var physicalGranularity: MTLSize { get }
    var layerCount: Int { get }
    var parameterDataSizeAndAlign: MTLSizeAndAlign { get }
    func copyParameterData(buffer: any MTLBuffer, offset: Int)
    func physicalSize(layer layerIndex: Int) -> MTLSize
    func screenCoordinates(physicalCoordinates: MTLSamplePosition, layer layerIndex: Int) -> MTLSamplePosition
    func physicalCoordinates(screenCoordinates: MTLSamplePosition, layer layerIndex: Int) -> MTLSamplePosition
}

extension SoftwareDevice {
    func supportsRasterizationRateMap(layerCount: Int) -> Bool { false }

    func supportsVertexAmplificationCount(_ count: Int) -> Bool { count == 1 }

    func makeRasterizationRateMap(descriptor: MTLRasterizationRateMapDescriptor) -> (any MTLRasterizationRateMap)? {
        note("\(name) does not render: makeRasterizationRateMap gives nil")
        return nil
    }
}
