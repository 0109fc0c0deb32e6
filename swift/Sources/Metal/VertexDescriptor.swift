// Layouts of vertices and of `stage_in`. This device runs neither render functions nor kernels with `stage_in`.

public class MTLVertexAttributeDescriptor: NSObject, NSCopying {
    public var format = MTLVertexFormat.invalid
    public var offset = 0
    public var bufferIndex = 0

    public func copy(with zone: NSZone? = nil) -> Any {
        let copy = MTLVertexAttributeDescriptor()
        (copy.format, copy.offset, copy.bufferIndex) = (format, offset, bufferIndex)
        return copy
    }
}

public class MTLVertexBufferLayoutDescriptor: NSObject, NSCopying {
    public var stride = 0
    public var stepFunction = MTLVertexStepFunction.perVertex
    public var stepRate = 1

    public func copy(with zone: NSZone? = nil) -> Any {
        let copy = MTLVertexBufferLayoutDescriptor()
        (copy.stride, copy.stepFunction, copy.stepRate) = (stride, stepFunction, stepRate)
        return copy
    }
}

public final class MTLVertexAttributeDescriptorArray: _DescriptorArray<MTLVertexAttributeDescriptor> {
    init() { super.init(MTLVertexAttributeDescriptor()) }
}

public final class MTLVertexBufferLayoutDescriptorArray: _DescriptorArray<MTLVertexBufferLayoutDescriptor> {
    init() { super.init(MTLVertexBufferLayoutDescriptor()) }
}

public class MTLVertexDescriptor: NSObject, NSCopying {
    public let layouts = MTLVertexBufferLayoutDescriptorArray()
    public let attributes = MTLVertexAttributeDescriptorArray()

    public func reset() {
        layouts.removeAll()
        attributes.removeAll()
    }

    public func copy(with zone: NSZone? = nil) -> Any {
        let copy = MTLVertexDescriptor()
        copy.layouts.take(layouts)
        copy.attributes.take(attributes)
        return copy
    }
}

public class MTLAttributeDescriptor: NSObject, NSCopying {
    public var format = MTLAttributeFormat.invalid
    public var offset = 0
    public var bufferIndex = 0

    public func copy(with zone: NSZone? = nil) -> Any {
        let copy = MTLAttributeDescriptor()
        (copy.format, copy.offset, copy.bufferIndex) = (format, offset, bufferIndex)
        return copy
    }
}

public class MTLBufferLayoutDescriptor: NSObject, NSCopying {
    public var stride = 0
    public var stepFunction = MTLStepFunction.perVertex
    public var stepRate = 1

    public func copy(with zone: NSZone? = nil) -> Any {
        let copy = MTLBufferLayoutDescriptor()
        (copy.stride, copy.stepFunction, copy.stepRate) = (stride, stepFunction, stepRate)
        return copy
    }
}

public final class MTLAttributeDescriptorArray: _DescriptorArray<MTLAttributeDescriptor> {
    init() { super.init(MTLAttributeDescriptor()) }
}

public final class MTLBufferLayoutDescriptorArray: _DescriptorArray<MTLBufferLayoutDescriptor> {
    init() { super.init(MTLBufferLayoutDescriptor()) }
}

public class MTLStageInputOutputDescriptor: NSObject, NSCopying {
    public let layouts = MTLBufferLayoutDescriptorArray()
    public let attributes = MTLAttributeDescriptorArray()
    public var indexType = MTLIndexType.uint16
    public var indexBufferIndex = 0

    public func reset() {
        layouts.removeAll()
        attributes.removeAll()
        (indexType, indexBufferIndex) = (.uint16, 0)
    }

    public func copy(with zone: NSZone? = nil) -> Any {
        let copy = MTLStageInputOutputDescriptor()
        copy.layouts.take(layouts)
        copy.attributes.take(attributes)
        (copy.indexType, copy.indexBufferIndex) = (indexType, indexBufferIndex)
        return copy
    }
}
