// Methods of compute encoders for features that this device does not have.

extension SoftwareComputeEncoder {
    func setStageInRegionWithIndirectBuffer(_ indirectBuffer: any MTLBuffer, indirectBufferOffset: Int) {
        refuse("setStageInRegionWithIndirectBuffer:indirectBufferOffset:", "no kernel of this device has stage_in.")
    }

    func setImageblockWidth(_ width: Int, height: Int) {
        refuse("setImageblockWidth:height:", "this device has no imageblocks.")
    }

    func setAccelerationStructure(_ accelerationStructure: (any MTLAccelerationStructure)?, bufferIndex: Int) {
        refuse("setAccelerationStructure:atBufferIndex:", "this device does not trace rays.")
    }

    func setVisibleFunctionTable(_ visibleFunctionTable: (any MTLVisibleFunctionTable)?, bufferIndex: Int) {
        refuse("setVisibleFunctionTable:atBufferIndex:", noPointers)
    }

    func setVisibleFunctionTables(
        _ visibleFunctionTables: [(any MTLVisibleFunctionTable)?], bufferRange: Range<Int>
    ) {
        refuse("setVisibleFunctionTables:withBufferRange:", noPointers)
    }

    func setIntersectionFunctionTable(
        _ intersectionFunctionTable: (any MTLIntersectionFunctionTable)?, bufferIndex: Int
    ) {
        refuse("setIntersectionFunctionTable:atBufferIndex:", "this device does not trace rays.")
    }

    func setIntersectionFunctionTables(
        _ intersectionFunctionTables: [(any MTLIntersectionFunctionTable)?], bufferRange: Range<Int>
    ) {
        refuse("setIntersectionFunctionTables:withBufferRange:", "this device does not trace rays.")
    }

    private var noPointers: String { "this device does not call functions through pointers." }

    private func refuse(_ selector: String, _ text: String) { misuse(debugName, selector, text) }
}
