import COrchard
import Foundation

@_cdecl("orchard_statistics_get")
public func abiStatistics(
    _ handle: UInt64, _ statistics: UnsafeMutablePointer<orchard_statistics>?, _ blockLength: UInt64
) -> Int32 {
    entry(handle) {
        let context = try HandleTable.shared.lookup(handle, as: Context.self)
        try fill(statistics, blockLength, "statistics") { try context.currentStatistics() }
    }
}

@_cdecl("orchard_trim")
public func abiTrim(_ handle: UInt64, _ keepBytes: UInt64) -> Int32 {
    entry(handle) {
        let context = try HandleTable.shared.lookup(handle, as: Context.self)
        try context.locked {
            context.stream.forgetDone()
            context.pool.collect()
            context.pool.trim(to: keepBytes)
        }
    }
}

@_cdecl("orchard_label_push")
public func abiLabelPush(_ handle: UInt64, _ label: UnsafePointer<CChar>?, _ length: UInt64) -> Int32 {
    entry(handle) {
        let context = try HandleTable.shared.lookup(handle, as: Context.self)
        let label = try text(label, length, "label")
        try context.locked { context.stream.pushGroup(label) }
    }
}

@_cdecl("orchard_label_pop")
public func abiLabelPop(_ handle: UInt64) -> Int32 {
    entry(handle) {
        let context = try HandleTable.shared.lookup(handle, as: Context.self)
        try context.locked { try context.stream.popGroup() }
    }
}

@_cdecl("orchard_capture_begin")
public func abiCaptureBegin(_ handle: UInt64, _ path: UnsafePointer<CChar>?, _ length: UInt64) -> Int32 {
    entry(handle) {
        let context = try HandleTable.shared.lookup(handle, as: Context.self)
        let path = try text(path, length, "path")
        try context.locked { try context.capture.begin(path: path) }
    }
}

@_cdecl("orchard_capture_end")
public func abiCaptureEnd(_ handle: UInt64) -> Int32 {
    entry(handle) {
        let context = try HandleTable.shared.lookup(handle, as: Context.self)
        try context.locked {
            context.stream.commit()
            try context.capture.end()
        }
    }
}

@_cdecl("orchard_configure")
public func abiConfigure(
    _ handle: UInt64, _ name: UnsafePointer<CChar>?, _ nameLength: UInt64, _ value: UnsafePointer<CChar>?,
    _ valueLength: UInt64
) -> Int32 {
    entry(handle) {
        let context = try HandleTable.shared.lookup(handle, as: Context.self)
        try context.configure(text(name, nameLength, "name"), text(value, valueLength, "value"))
    }
}

@_cdecl("orchard_report")
public func abiReport(
    _ handle: UInt64, _ clear: UInt32, _ buffer: UnsafeMutablePointer<CChar>?, _ capacity: UInt64,
    _ length: UnsafeMutablePointer<UInt64>?
) -> Int32 {
    entry(handle) {
        let context = try HandleTable.shared.lookup(handle, as: Context.self)
        try give(context.report(), buffer, capacity, length) {
            if clear != 0 { context.clearReport() }
        }
    }
}

@_cdecl("orchard_inject_fault")
public func abiInjectFault(
    _ handle: UInt64, _ kind: UnsafePointer<CChar>?, _ kindLength: UInt64, _ skip: UInt32, _ count: UInt32,
    _ code: Int32
) -> Int32 {
    entry(handle) {
        let context = try HandleTable.shared.lookup(handle, as: Context.self)
        try context.faults.inject(text(kind, kindLength, "kind"), skip: skip, count: count, code: code)
    }
}

extension Context {
    fileprivate func currentStatistics() throws -> orchard_statistics {
        try locked {
            pool.collect()
            var values = statistics.values
            values.failed_tickets = tickets.failed
            return values
        }
    }

    fileprivate func report() -> String {
        JSON.text([
            "notes": currentNotes(),
            "settings": SoftwareDevice.settings(),
            "findings": SoftwareDevice.findings(clear: false),
            "dispatches": SoftwareDevice.dispatches(clear: false),
        ])
    }

    fileprivate func clearReport() {
        clearNotes()
        _ = SoftwareDevice.findings(clear: true)
        _ = SoftwareDevice.dispatches(clear: true)
    }
}
