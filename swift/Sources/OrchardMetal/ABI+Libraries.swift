import COrchard

@_cdecl("orchard_library_create")
public func abiLibraryCreate(
    _ handle: UInt64, _ options: UnsafePointer<orchard_library_options>?, _ blockLength: UInt64,
    _ library: UnsafeMutablePointer<UInt64>?
) -> Int32 {
    entry(handle) {
        let context = try HandleTable.shared.lookup(handle, as: Context.self)
        let result = try required(library, "library")
        let request = try LibraryRequest(Block(options, blockLength, "options"))
        result.pointee = try HandleTable.shared.insert(context.libraries.library(request, for: context))
    }
}

@_cdecl("orchard_library_functions")
public func abiLibraryFunctions(
    _ handle: UInt64, _ buffer: UnsafeMutablePointer<CChar>?, _ capacity: UInt64,
    _ length: UnsafeMutablePointer<UInt64>?
) -> Int32 {
    entry(handle) {
        let library = try HandleTable.shared.lookup(handle, as: Library.self)
        try give(library.pipelines.locked { library.functionsJSON }, buffer, capacity, length)
    }
}

@_cdecl("orchard_pipeline_create")
public func abiPipelineCreate(
    _ handle: UInt64, _ options: UnsafePointer<orchard_pipeline_options>?, _ blockLength: UInt64,
    _ pipeline: UnsafeMutablePointer<UInt64>?
) -> Int32 {
    entry(handle) {
        let library = try HandleTable.shared.lookup(handle, as: Library.self)
        let result = try required(pipeline, "pipeline")
        let request = try PipelineRequest(Block(options, blockLength, "options"))
        result.pointee = try HandleTable.shared.insert(library.pipelines.pipeline(request, of: library))
    }
}

@_cdecl("orchard_pipeline_info")
public func abiPipelineInfo(
    _ handle: UInt64, _ buffer: UnsafeMutablePointer<CChar>?, _ capacity: UInt64,
    _ length: UnsafeMutablePointer<UInt64>?
) -> Int32 {
    entry(handle) { try give(HandleTable.shared.lookup(handle, as: Pipeline.self).json, buffer, capacity, length) }
}

extension LibraryRequest {
    init(_ block: Block<orchard_library_options>) throws {
        let given = block.header
        guard given.flags == 0 else { throw OrchardError.invalid("options: flags \(given.flags) are unknown.") }
        guard let source = try block.text(given.source, "source") else {
            throw OrchardError.invalid("options: source is empty.")
        }
        self.init(
            name: try block.text(given.name, "name"), source: source,
            headers: try block.namedTexts(given.headers, "headers"),
            macros: try block.namedTexts(given.macros, "macros"), languageVersion: given.language_version,
            mathMode: given.math_mode,
            mathFunctions: given.math_functions, label: try block.text(given.label, "label"))
    }
}

extension PipelineRequest {
    init(_ block: Block<orchard_pipeline_options>) throws {
        let given = block.header
        guard given.flags == 0 else { throw OrchardError.invalid("options: flags \(given.flags) are unknown.") }
        guard let function = try block.text(given.function, "function") else {
            throw OrchardError.invalid("options: function is empty.")
        }
        self.init(
            function: function,
            constants: try block.array(given.constants, of: orchard_constant.self, "constants").map { constant in
                ConstantValue(
                    name: try block.text(constant.name, "name of a constant"), index: constant.index,
                    type: constant.type,
                    bytes: withUnsafeBytes(of: constant.value, Array.init))
            },
            maxThreads: given.max_threads, label: try block.text(given.label, "label"))
    }
}
