import Kernels

let values = try Saxpy()(factor: try Saxpy.factor())
print("last \(values[values.count - 1]), arguments \(CommandLine.arguments.dropFirst().joined(separator: " "))")
