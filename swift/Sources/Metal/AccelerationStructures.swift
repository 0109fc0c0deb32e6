// Acceleration structures for ray tracing, which this device does not support. Only descriptors exist; structures,
// function tables and encoders do not.

public struct MTLPackedFloat3: Sendable {
    public var x: Float
    public var y: Float
    public var z: Float

    public init() { self.init(0, 0, 0) }

    public init(_ x: Float, _ y: Float, _ z: Float) { (self.x, self.y, self.z) = (x, y, z) }
}

public func MTLPackedFloat3Make(_ x: Float, _ y: Float, _ z: Float) -> MTLPackedFloat3 { MTLPackedFloat3(x, y, z) }

/// A matrix of four columns.
public struct MTLPackedFloat4x3: Sendable {
    public var columns: (MTLPackedFloat3, MTLPackedFloat3, MTLPackedFloat3, MTLPackedFloat3)

    public init() { self.init(columns: (MTLPackedFloat3(), MTLPackedFloat3(), MTLPackedFloat3(), MTLPackedFloat3())) }

    public init(columns: (MTLPackedFloat3, MTLPackedFloat3, MTLPackedFloat3, MTLPackedFloat3)) {
        self.columns = columns
    }
}

public struct MTLAccelerationStructureUsage: OptionSet, Sendable {
    public let rawValue: UInt

    public init(rawValue: UInt) { self.rawValue = rawValue }

    public static var refit: MTLAccelerationStructureUsage { MTLAccelerationStructureUsage(rawValue: 1) }
    public static var preferFastBuild: MTLAccelerationStructureUsage { MTLAccelerationStructureUsage(rawValue: 2) }
    public static var extendedLimits: MTLAccelerationStructureUsage { MTLAccelerationStructureUsage(rawValue: 4) }
}

public struct MTLAccelerationStructureRefitOptions: OptionSet, Sendable {
    public let rawValue: UInt

    public init(rawValue: UInt) { self.rawValue = rawValue }

    public static var vertexData: MTLAccelerationStructureRefitOptions { .init(rawValue: 1) }
    public static var perPrimitiveData: MTLAccelerationStructureRefitOptions { .init(rawValue: 2) }
}

public struct MTLAccelerationStructureInstanceOptions: OptionSet, Sendable {
    public let rawValue: UInt32

    public init(rawValue: UInt32) { self.rawValue = rawValue }

    public static var disableTriangleCulling: MTLAccelerationStructureInstanceOptions { .init(rawValue: 1) }
    public static var triangleFrontFacingWindingCounterClockwise: MTLAccelerationStructureInstanceOptions {
        .init(rawValue: 2)
    }
    public static var opaque: MTLAccelerationStructureInstanceOptions { .init(rawValue: 4) }
    public static var nonOpaque: MTLAccelerationStructureInstanceOptions { .init(rawValue: 8) }
}

public enum MTLAccelerationStructureInstanceDescriptorType: UInt, Sendable {
    case `default` = 0
    case userID = 1
    case motion = 2
    case indirect = 3
    case indirectMotion = 4
}

public struct MTLAccelerationStructureInstanceDescriptor: Sendable {
    public var transformationMatrix = MTLPackedFloat4x3()
    public var options: MTLAccelerationStructureInstanceOptions = []
    public var mask: UInt32 = 0
    public var intersectionFunctionTableOffset: UInt32 = 0
    public var accelerationStructureIndex: UInt32 = 0

    public init() {}
}

public struct MTLAxisAlignedBoundingBox: Sendable {
    public var min: MTLPackedFloat3
    public var max: MTLPackedFloat3

    public init() { self.init(min: MTLPackedFloat3(), max: MTLPackedFloat3()) }

    public init(min: MTLPackedFloat3, max: MTLPackedFloat3) { (self.min, self.max) = (min, max) }
}

public class MTLAccelerationStructureDescriptor: NSObject, NSCopying {
    public var usage: MTLAccelerationStructureUsage = []

    public func copy(with zone: NSZone? = nil) -> Any {
        let copy = MTLAccelerationStructureDescriptor()
        copy.usage = usage
        return copy
    }
}

public class MTLAccelerationStructureGeometryDescriptor: NSObject, NSCopying {
    public var label: String?
    public var opaque = false
    public var allowDuplicateIntersectionFunctionInvocation = true
    public var intersectionFunctionTableOffset = 0
    public var primitiveDataBuffer: (any MTLBuffer)?
    public var primitiveDataBufferOffset = 0
    public var primitiveDataElementSize = 0
    public var primitiveDataStride = 0

    public func copy(with zone: NSZone? = nil) -> Any { copied(to: MTLAccelerationStructureGeometryDescriptor()) }

    func copied<Geometry: MTLAccelerationStructureGeometryDescriptor>(to copy: Geometry) -> Geometry {
        (copy.label, copy.opaque) = (label, opaque)
        copy.allowDuplicateIntersectionFunctionInvocation = allowDuplicateIntersectionFunctionInvocation
        copy.intersectionFunctionTableOffset = intersectionFunctionTableOffset
        (copy.primitiveDataBuffer, copy.primitiveDataBufferOffset) = (primitiveDataBuffer, primitiveDataBufferOffset)
        (copy.primitiveDataElementSize, copy.primitiveDataStride) = (primitiveDataElementSize, primitiveDataStride)
        return copy
    }
}

public class MTLAccelerationStructureTriangleGeometryDescriptor: MTLAccelerationStructureGeometryDescriptor {
    public var vertexBuffer: (any MTLBuffer)?
    public var vertexBufferOffset = 0
    public var vertexFormat = MTLAttributeFormat.float3
    public var vertexStride = 0
    public var indexBuffer: (any MTLBuffer)?
    public var indexBufferOffset = 0
    public var indexType = MTLIndexType.uint32
    public var triangleCount = 0
    public var transformationMatrixBuffer: (any MTLBuffer)?
    public var transformationMatrixBufferOffset = 0

    public override func copy(with zone: NSZone? = nil) -> Any {
        let copy = copied(to: MTLAccelerationStructureTriangleGeometryDescriptor())
        (copy.vertexBuffer, copy.vertexBufferOffset) = (vertexBuffer, vertexBufferOffset)
        (copy.vertexFormat, copy.vertexStride) = (vertexFormat, vertexStride)
        (copy.indexBuffer, copy.indexBufferOffset, copy.indexType) = (indexBuffer, indexBufferOffset, indexType)
        copy.triangleCount = triangleCount
        copy.transformationMatrixBuffer = transformationMatrixBuffer
        copy.transformationMatrixBufferOffset = transformationMatrixBufferOffset
        return copy
    }
}

public class MTLAccelerationStructureBoundingBoxGeometryDescriptor: MTLAccelerationStructureGeometryDescriptor {
    public var boundingBoxBuffer: (any MTLBuffer)?
    public var boundingBoxBufferOffset = 0
    public var boundingBoxStride = 24
    public var boundingBoxCount = 0

    public override func copy(with zone: NSZone? = nil) -> Any {
        let copy = copied(to: MTLAccelerationStructureBoundingBoxGeometryDescriptor())
        (copy.boundingBoxBuffer, copy.boundingBoxBufferOffset) = (boundingBoxBuffer, boundingBoxBufferOffset)
        (copy.boundingBoxStride, copy.boundingBoxCount) = (boundingBoxStride, boundingBoxCount)
        return copy
    }
}

public class MTLPrimitiveAccelerationStructureDescriptor: MTLAccelerationStructureDescriptor {
    public var geometryDescriptors: [MTLAccelerationStructureGeometryDescriptor]?

    public override func copy(with zone: NSZone? = nil) -> Any {
        let copy = MTLPrimitiveAccelerationStructureDescriptor()
        (copy.usage, copy.geometryDescriptors) = (usage, geometryDescriptors)
        return copy
    }
}

public class MTLInstanceAccelerationStructureDescriptor: MTLAccelerationStructureDescriptor {
    public var instanceDescriptorBuffer: (any MTLBuffer)?
    public var instanceDescriptorBufferOffset = 0
    public var instanceDescriptorStride = 64
    public var instanceCount = 0
    public var instancedAccelerationStructures: [any MTLAccelerationStructure]?
    public var instanceDescriptorType = MTLAccelerationStructureInstanceDescriptorType.default

    public override func copy(with zone: NSZone? = nil) -> Any {
        let copy = MTLInstanceAccelerationStructureDescriptor()
        (copy.usage, copy.instanceDescriptorBuffer) = (usage, instanceDescriptorBuffer)
        (copy.instanceDescriptorBufferOffset, copy.instanceDescriptorStride) =
            (instanceDescriptorBufferOffset, instanceDescriptorStride)
        (copy.instanceCount, copy.instancedAccelerationStructures) = (instanceCount, instancedAccelerationStructures)
        copy.instanceDescriptorType = instanceDescriptorType
        return copy
    }
}

public struct MTLAccelerationStructureSizes: Sendable {
    public var accelerationStructureSize = 0
    public var buildScratchBufferSize = 0
    public var refitScratchBufferSize = 0

    public init() {}
}

public class MTLAccelerationStructurePassDescriptor: NSObject, NSCopying {
    public func copy(with zone: NSZone? = nil) -> Any { MTLAccelerationStructurePassDescriptor() }
}

public protocol MTLAccelerationStructure: MTLResource {
    var size: Int { get }
    var gpuResourceID: MTLResourceID { get }
}

public class MTLVisibleFunctionTableDescriptor: NSObject, NSCopying {
    public var functionCount = 0

    public func copy(with zone: NSZone? = nil) -> Any {
        let copy = MTLVisibleFunctionTableDescriptor()
        copy.functionCount = functionCount
        return copy
    }
}

public class MTLIntersectionFunctionTableDescriptor: NSObject, NSCopying {
    public var functionCount = 0

    public func copy(with zone: NSZone? = nil) -> Any {
        let copy = MTLIntersectionFunctionTableDescriptor()
        copy.functionCount = functionCount
        return copy
    }
}

public protocol MTLVisibleFunctionTable: MTLResource {
    var gpuResourceID: MTLResourceID { get }
    func setFunction(_ function: (any MTLFunctionHandle)?, index: Int)
    func setFunctions(_ functions: [(any MTLFunctionHandle)?], range: Range<Int>)
}

public protocol MTLIntersectionFunctionTable: MTLResource {
    var gpuResourceID: MTLResourceID { get }
    func setBuffer(_ buffer: (any MTLBuffer)?, offset: Int, index: Int)
    func setBuffers(_ buffers: [(any MTLBuffer)?], offsets: [Int], range: Range<Int>)
    func setFunction(_ function: (any MTLFunctionHandle)?, index: Int)
    func setFunctions(_ functions: [(any MTLFunctionHandle)?], range: Range<Int>)
    func setVisibleFunctionTable(_ visibleFunctionTable: (any MTLVisibleFunctionTable)?, bufferIndex: Int)
    func setVisibleFunctionTables(
        _ visibleFunctionTables: [(any MTLVisibleFunctionTable)?], bufferRange: Range<Int>)
}

public protocol MTLAccelerationStructureCommandEncoder: MTLCommandEncoder {
    func build(
        accelerationStructure: any MTLAccelerationStructure, descriptor: MTLAccelerationStructureDescriptor,
        scratchBuffer: any MTLBuffer, scratchBufferOffset: Int)
    func refit(
        sourceAccelerationStructure: any MTLAccelerationStructure, descriptor: MTLAccelerationStructureDescriptor,
        destinationAccelerationStructure: (any MTLAccelerationStructure)?, scratchBuffer: (any MTLBuffer)?,
        scratchBufferOffset: Int)
    func refit(
        sourceAccelerationStructure: any MTLAccelerationStructure, descriptor: MTLAccelerationStructureDescriptor,
        destinationAccelerationStructure: (any MTLAccelerationStructure)?, scratchBuffer: (any MTLBuffer)?,
        scratchBufferOffset: Int, options: MTLAccelerationStructureRefitOptions)
    func copy(
        sourceAccelerationStructure: any MTLAccelerationStructure,
        destinationAccelerationStructure: any MTLAccelerationStructure)
    func copyAndCompact(
        sourceAccelerationStructure: any MTLAccelerationStructure,
        destinationAccelerationStructure: any MTLAccelerationStructure)
    func writeCompactedSize(
        accelerationStructure: any MTLAccelerationStructure, buffer: any MTLBuffer, offset: Int)
    func writeCompactedSize(
        accelerationStructure: any MTLAccelerationStructure, buffer: any MTLBuffer, offset: Int,
        sizeDataType: MTLDataType)
    func updateFence(_ fence: any MTLFence)
    func waitForFence(_ fence: any MTLFence)
    func useResource(_ resource: any MTLResource, usage: MTLResourceUsage)
    func useResources(_ resources: [any MTLResource], usage: MTLResourceUsage)
    func useHeap(_ heap: any MTLHeap)
    func useHeaps(_ heaps: [any MTLHeap])
    func sampleCounters(sampleBuffer: any MTLCounterSampleBuffer, sampleIndex: Int, barrier: Bool)
}

extension SoftwareDevice {
    func accelerationStructureSizes(descriptor: MTLAccelerationStructureDescriptor) -> MTLAccelerationStructureSizes {
        noteNoRays("accelerationStructureSizes gives zeros")
        return MTLAccelerationStructureSizes()
    }

    func makeAccelerationStructure(size: Int) -> (any MTLAccelerationStructure)? {
        noteNoRays("makeAccelerationStructure gives nil")
        return nil
    }

    func makeAccelerationStructure(descriptor: MTLAccelerationStructureDescriptor) -> (any MTLAccelerationStructure)? {
        noteNoRays("makeAccelerationStructure gives nil")
        return nil
    }
}

extension SoftwareCommandBuffer {
    func makeAccelerationStructureCommandEncoder() -> (any MTLAccelerationStructureCommandEncoder)? {
        noteNoRays("makeAccelerationStructureCommandEncoder gives nil")
        return nil
    }

    func makeAccelerationStructureCommandEncoder(descriptor: MTLAccelerationStructurePassDescriptor)
        -> (any MTLAccelerationStructureCommandEncoder)?
    { makeAccelerationStructureCommandEncoder() }
}

private func noteNoRays(_ result: String) {
    note("\(SoftwareDevice.shared.name) does not trace rays, as supportsRaytracing says: \(result)")
}
