import Metal
