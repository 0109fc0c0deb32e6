// The structs of Metal's API that kernels fill for later draws and dispatches, or read as tessellation factors. They
// are the same for the host (MTLRenderCommandEncoder.h, MTLComputeCommandEncoder.h).
#ifndef MRT_INDIRECT_ARGUMENTS_H
#define MRT_INDIRECT_ARGUMENTS_H

#include "types.h"

struct MTLDispatchThreadgroupsIndirectArguments {
  uint threadgroupsPerGrid[3];
};
struct MTLDispatchThreadsIndirectArguments {
  uint threadsPerGrid[3];
  uint threadsPerThreadgroup[3];
};
struct MTLStageInRegionIndirectArguments {
  uint stageInOrigin[3];
  uint stageInSize[3];
};
struct MTLDrawPrimitivesIndirectArguments {
  uint vertexCount, instanceCount, vertexStart, baseInstance;
};
struct MTLDrawIndexedPrimitivesIndirectArguments {
  uint indexCount, instanceCount, indexStart;
  int baseVertex;
  uint baseInstance;
};
struct MTLDrawPatchIndirectArguments {
  uint patchCount, instanceCount, patchStart, baseInstance;
};
struct MTLQuadTessellationFactorsHalf {
  half edgeTessellationFactor[4];
  half insideTessellationFactor[2];
};
struct MTLTriangleTessellationFactorsHalf {
  half edgeTessellationFactor[3];
  half insideTessellationFactor;
};

#endif
