/* A module of SPIR-V 1.0 with one kernel:
 *
 *   kernel void twice(global const uint *in, global uint *out, int columns, int rows)
 *   out[y * columns + x] = 2 * in[y * columns + x] + 1, inside of columns x rows
 *
 * The words are what `spirv-as --target-env spv1.0` makes of this text:
 *
 *                OpCapability Addresses
 *                OpCapability Kernel
 *                OpCapability Int64
 *                OpMemoryModel Physical64 OpenCL
 *                OpEntryPoint Kernel %twice "twice" %id
 *                OpDecorate %id Constant
 *                OpDecorate %id BuiltIn GlobalInvocationId
 *        %uint = OpTypeInt 32 0
 *       %ulong = OpTypeInt 64 0
 *         %ids = OpTypeVector %ulong 3
 *      %id_ptr = OpTypePointer Input %ids
 *         %ptr = OpTypePointer CrossWorkgroup %uint
 *        %void = OpTypeVoid
 *        %bool = OpTypeBool
 *        %type = OpTypeFunction %void %ptr %ptr %uint %uint
 *         %one = OpConstant %uint 1
 *          %id = OpVariable %id_ptr Input
 *       %twice = OpFunction %void None %type
 *          %in = OpFunctionParameter %ptr
 *         %out = OpFunctionParameter %ptr
 *     %columns = OpFunctionParameter %uint
 *        %rows = OpFunctionParameter %uint
 *       %start = OpLabel
 *         %all = OpLoad %ids %id Aligned 32
 *          %x0 = OpCompositeExtract %ulong %all 0
 *           %x = OpUConvert %uint %x0
 *          %y0 = OpCompositeExtract %ulong %all 1
 *           %y = OpUConvert %uint %y0
 *     %in_line = OpULessThan %bool %x %columns
 *     %in_band = OpULessThan %bool %y %rows
 *      %inside = OpLogicalAnd %bool %in_line %in_band
 *                OpBranchConditional %inside %work %end
 *        %work = OpLabel
 *        %line = OpIMul %uint %y %columns
 *          %at = OpIAdd %uint %line %x
 *        %at64 = OpUConvert %ulong %at
 *        %from = OpInBoundsPtrAccessChain %ptr %in %at64
 *          %to = OpInBoundsPtrAccessChain %ptr %out %at64
 *       %value = OpLoad %uint %from Aligned 4
 *      %double = OpIAdd %uint %value %value
 *         %sum = OpIAdd %uint %double %one
 *                OpStore %to %sum Aligned 4
 *                OpBranch %end
 *         %end = OpLabel
 *                OpReturn
 *                OpFunctionEnd
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_TESTS_TWICE_SPIRV_H
#define COX_TESTS_TWICE_SPIRV_H

#include <stdint.h>

/* clang-format off */
static const uint32_t twice_spirv[] = {
    0x07230203, 0x00010000, 0x00070000, 0x00000023, 0x00000000, 0x00020011, 0x00000004, 0x00020011, 0x00000006, 0x00020011,
    0x0000000b, 0x0003000e, 0x00000002, 0x00000002, 0x0006000f, 0x00000006, 0x00000001, 0x63697774, 0x00000065, 0x00000002,
    0x00030047, 0x00000002, 0x00000016, 0x00040047, 0x00000002, 0x0000000b, 0x0000001c, 0x00040015, 0x00000003, 0x00000020,
    0x00000000, 0x00040015, 0x00000004, 0x00000040, 0x00000000, 0x00040017, 0x00000005, 0x00000004, 0x00000003, 0x00040020,
    0x00000006, 0x00000001, 0x00000005, 0x00040020, 0x00000007, 0x00000005, 0x00000003, 0x00020013, 0x00000008, 0x00020014,
    0x00000009, 0x00070021, 0x0000000a, 0x00000008, 0x00000007, 0x00000007, 0x00000003, 0x00000003, 0x0004002b, 0x00000003,
    0x0000000b, 0x00000001, 0x0004003b, 0x00000006, 0x00000002, 0x00000001, 0x00050036, 0x00000008, 0x00000001, 0x00000000,
    0x0000000a, 0x00030037, 0x00000007, 0x0000000c, 0x00030037, 0x00000007, 0x0000000d, 0x00030037, 0x00000003, 0x0000000e,
    0x00030037, 0x00000003, 0x0000000f, 0x000200f8, 0x00000010, 0x0006003d, 0x00000005, 0x00000011, 0x00000002, 0x00000002,
    0x00000020, 0x00050051, 0x00000004, 0x00000012, 0x00000011, 0x00000000, 0x00040071, 0x00000003, 0x00000013, 0x00000012,
    0x00050051, 0x00000004, 0x00000014, 0x00000011, 0x00000001, 0x00040071, 0x00000003, 0x00000015, 0x00000014, 0x000500b0,
    0x00000009, 0x00000016, 0x00000013, 0x0000000e, 0x000500b0, 0x00000009, 0x00000017, 0x00000015, 0x0000000f, 0x000500a7,
    0x00000009, 0x00000018, 0x00000016, 0x00000017, 0x000400fa, 0x00000018, 0x00000019, 0x0000001a, 0x000200f8, 0x00000019,
    0x00050084, 0x00000003, 0x0000001b, 0x00000015, 0x0000000e, 0x00050080, 0x00000003, 0x0000001c, 0x0000001b, 0x00000013,
    0x00040071, 0x00000004, 0x0000001d, 0x0000001c, 0x00050046, 0x00000007, 0x0000001e, 0x0000000c, 0x0000001d, 0x00050046,
    0x00000007, 0x0000001f, 0x0000000d, 0x0000001d, 0x0006003d, 0x00000003, 0x00000020, 0x0000001e, 0x00000002, 0x00000004,
    0x00050080, 0x00000003, 0x00000021, 0x00000020, 0x00000020, 0x00050080, 0x00000003, 0x00000022, 0x00000021, 0x0000000b,
    0x0005003e, 0x0000001f, 0x00000022, 0x00000002, 0x00000004, 0x000200f9, 0x0000001a, 0x000200f8, 0x0000001a, 0x000100fd,
    0x00010038,
};
/* clang-format on */

#endif
