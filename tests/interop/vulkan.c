/* Vulkan memory as input and output of a session. Vulkan writes a pattern, the session adds one to each word, and
 * Vulkan copies the result to memory that the host reads. Frames go through copies, or work in place, with fences or
 * with semaphores.
 *
 * It runs on every device that Vulkan knows too, by its UUID, and that can import Vulkan's memory. The exit status
 * is 77 if no device can.
 * SPDX-License-Identifier: Apache-2.0 */
#include "specs.h"
#include <coxswain/coxswain.h>
#include <coxswain/opencl.h>
#include "support/check.h"

#include <CL/cl_ext.h>
#include <string.h>
#include <unistd.h>
#include <vulkan/vulkan.h>

enum { ROWS = 512, COLUMNS = 1024, WORDS = ROWS * COLUMNS, BYTES = 4 * WORDS, PHYSICAL_MAX = 32, HALF = WORDS / 2 };

static const char source[] = "kernel void more(global const uint *in, global uint *out, int columns, int rows) {\n"
                             "    int x = get_global_id(0), y = get_global_id(1);\n"
                             "    if (x < columns && y < rows) out[y * columns + x] = in[y * columns + x] + 1u;\n"
                             "}\n";

static void on_log(void *user, enum cox_log_level level, const char *line)
{
    (void)user;
    fprintf(stderr, "%d %s\n", (int)level, line);
}

/* ---- Vulkan ---- */

struct vulkan {
    VkInstance instance;
    VkPhysicalDevice physical;
    VkDevice device;
    VkQueue queue;
    VkCommandPool pool;
    PFN_vkGetMemoryFdKHR get_fd;
    PFN_vkGetSemaphoreFdKHR get_semaphore_fd; /* NULL = semaphores cannot be exported */
};

struct memory {
    VkBuffer buffer;
    VkDeviceMemory memory;
    VkDeviceSize bytes; /* of the allocation */
};

static bool make_instance(VkInstance *out)
{
    const VkApplicationInfo application = {.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
                                           .apiVersion = VK_API_VERSION_1_1};
    const VkInstanceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
                                       .pApplicationInfo = &application};
    return vkCreateInstance(&info, NULL, out) == VK_SUCCESS;
}

static bool find_physical(struct vulkan *vulkan, const cl_uchar *uuid)
{
    VkPhysicalDevice found[PHYSICAL_MAX];
    uint32_t count = PHYSICAL_MAX;
    const VkResult result = vkEnumeratePhysicalDevices(vulkan->instance, &count, found);
    for (uint32_t i = 0; i < count && (result == VK_SUCCESS || result == VK_INCOMPLETE); i++) {
        VkPhysicalDeviceIDProperties id = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES};
        VkPhysicalDeviceProperties2 properties = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2,
                                                  .pNext = &id};
        vkGetPhysicalDeviceProperties2(found[i], &properties);
        vulkan->physical = found[i];
        if (memcmp(id.deviceUUID, uuid, VK_UUID_SIZE) == 0)
            return true;
    }
    return false;
}

static bool has_extension(const struct vulkan *vulkan, const char *name)
{
    VkExtensionProperties properties[512];
    uint32_t count = sizeof properties / sizeof *properties;
    bool found = false;
    const VkResult result = vkEnumerateDeviceExtensionProperties(vulkan->physical, NULL, &count, properties);
    for (uint32_t i = 0; i < count && (result == VK_SUCCESS || result == VK_INCOMPLETE); i++)
        found |= strcmp(properties[i].extensionName, name) == 0;
    return found;
}

/* Create one queue of the first family that can transfer, which is any but video queues. */
static bool make_device(struct vulkan *vulkan)
{
    static const char *const extensions[] = {VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME,
                                             VK_KHR_EXTERNAL_SEMAPHORE_FD_EXTENSION_NAME};
    const bool semaphores = has_extension(vulkan, extensions[1]);
    VkQueueFamilyProperties families[PHYSICAL_MAX];
    uint32_t count = PHYSICAL_MAX, family = 0;
    const VkQueueFlags transfers = VK_QUEUE_GRAPHICS_BIT | VK_QUEUE_COMPUTE_BIT | VK_QUEUE_TRANSFER_BIT;
    const float priority = 1;
    vkGetPhysicalDeviceQueueFamilyProperties(vulkan->physical, &count, families);
    while (family < count && !(families[family].queueFlags & transfers))
        family++;
    CHECK(family < count);
    const VkDeviceQueueCreateInfo queue = {.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
                                           .queueFamilyIndex = family,
                                           .queueCount = 1,
                                           .pQueuePriorities = &priority};
    const VkDeviceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                                     .queueCreateInfoCount = 1,
                                     .pQueueCreateInfos = &queue,
                                     .enabledExtensionCount = semaphores ? 2 : 1,
                                     .ppEnabledExtensionNames = extensions};
    if (vkCreateDevice(vulkan->physical, &info, NULL, &vulkan->device))
        return false;
    const VkCommandPoolCreateInfo pool = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                          .queueFamilyIndex = family};
    CHECK(!vkCreateCommandPool(vulkan->device, &pool, NULL, &vulkan->pool));
    vkGetDeviceQueue(vulkan->device, family, 0, &vulkan->queue);
    vulkan->get_fd = (PFN_vkGetMemoryFdKHR)vkGetDeviceProcAddr(vulkan->device, "vkGetMemoryFdKHR");
    if (semaphores)
        vulkan->get_semaphore_fd = (PFN_vkGetSemaphoreFdKHR)vkGetDeviceProcAddr(vulkan->device, "vkGetSemaphoreFdKHR");
    return vulkan->get_fd != NULL;
}

static uint32_t memory_type(const struct vulkan *vulkan, uint32_t possible, VkMemoryPropertyFlags wanted)
{
    VkPhysicalDeviceMemoryProperties properties;
    uint32_t type = 0;
    vkGetPhysicalDeviceMemoryProperties(vulkan->physical, &properties);
    while (type < properties.memoryTypeCount &&
           (!(possible >> type & 1) || (properties.memoryTypes[type].propertyFlags & wanted) != wanted))
        type++;
    CHECK(type < properties.memoryTypeCount);
    return type;
}

static struct memory make_memory(const struct vulkan *vulkan, VkMemoryPropertyFlags wanted, bool exported)
{
    struct memory made;
    VkMemoryRequirements needs;
    const VkExternalMemoryBufferCreateInfo external = {.sType = VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO,
                                                       .handleTypes = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT};
    const VkBufferCreateInfo info = {.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
                                     .pNext = exported ? &external : NULL,
                                     .size = BYTES,
                                     .usage = VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT};
    CHECK(!vkCreateBuffer(vulkan->device, &info, NULL, &made.buffer));
    vkGetBufferMemoryRequirements(vulkan->device, made.buffer, &needs);
    made.bytes = needs.size;
    const VkExportMemoryAllocateInfo exports = {.sType = VK_STRUCTURE_TYPE_EXPORT_MEMORY_ALLOCATE_INFO,
                                                .handleTypes = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT};
    const VkMemoryAllocateInfo allocation = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                             .pNext = exported ? &exports : NULL,
                                             .allocationSize = needs.size,
                                             .memoryTypeIndex = memory_type(vulkan, needs.memoryTypeBits, wanted)};
    CHECK(!vkAllocateMemory(vulkan->device, &allocation, NULL, &made.memory));
    CHECK(!vkBindBufferMemory(vulkan->device, made.buffer, made.memory, 0));
    return made;
}

static void free_memory(const struct vulkan *vulkan, struct memory *memory)
{
    vkDestroyBuffer(vulkan->device, memory->buffer, NULL);
    vkFreeMemory(vulkan->device, memory->memory, NULL);
}

/* Semaphores that a transfer waits for and signals; NULL = none. */
struct order {
    VkSemaphore wait, signal;
};

/* Copy `from` to `to`. If `from` is NULL, fill the halves of `to` with two different words. Waits for the end, unless
 * the transfer signals a semaphore. */
static void transfer(const struct vulkan *vulkan, const struct memory *to, const struct memory *from,
                     const uint32_t *words, struct order order)
{
    const VkPipelineStageFlags stage = VK_PIPELINE_STAGE_TRANSFER_BIT;
    VkCommandBuffer commands;
    const VkCommandBufferAllocateInfo allocation = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                                    .commandPool = vulkan->pool,
                                                    .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
                                                    .commandBufferCount = 1};
    const VkCommandBufferBeginInfo begin = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
                                            .flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT};
    const VkMemoryBarrier visible = {.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
                                     .srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT,
                                     .dstAccessMask = VK_ACCESS_HOST_READ_BIT | VK_ACCESS_MEMORY_READ_BIT};
    CHECK(!vkAllocateCommandBuffers(vulkan->device, &allocation, &commands));
    CHECK(!vkBeginCommandBuffer(commands, &begin));
    if (from) {
        vkCmdCopyBuffer(commands, from->buffer, to->buffer, 1, &(VkBufferCopy){.size = BYTES});
    } else {
        vkCmdFillBuffer(commands, to->buffer, 0, 4 * HALF, words[0]);
        vkCmdFillBuffer(commands, to->buffer, 4 * HALF, 4 * HALF, words[1]);
    }
    vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_TRANSFER_BIT,
                         VK_PIPELINE_STAGE_HOST_BIT | VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, 0, 1, &visible, 0, NULL, 0,
                         NULL);
    CHECK(!vkEndCommandBuffer(commands));
    const VkSubmitInfo submit = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                                 .waitSemaphoreCount = order.wait != VK_NULL_HANDLE,
                                 .pWaitSemaphores = &order.wait,
                                 .pWaitDstStageMask = &stage,
                                 .signalSemaphoreCount = order.signal != VK_NULL_HANDLE,
                                 .pSignalSemaphores = &order.signal,
                                 .commandBufferCount = 1,
                                 .pCommandBuffers = &commands};
    CHECK(!vkQueueSubmit(vulkan->queue, 1, &submit, VK_NULL_HANDLE));
    if (order.signal) /* the pool frees the commands later */
        return;
    CHECK(!vkQueueWaitIdle(vulkan->queue));
    vkFreeCommandBuffers(vulkan->device, vulkan->pool, 1, &commands);
}

static VkSemaphore make_semaphore(const struct vulkan *vulkan)
{
    const VkExportSemaphoreCreateInfo exports = {.sType = VK_STRUCTURE_TYPE_EXPORT_SEMAPHORE_CREATE_INFO,
                                                 .handleTypes = VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT};
    const VkSemaphoreCreateInfo info = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, .pNext = &exports};
    VkSemaphore made;
    CHECK(!vkCreateSemaphore(vulkan->device, &info, NULL, &made));
    return made;
}

/* Returns NULL if the device cannot import such memory. */
static cl_mem import(const struct vulkan *vulkan, const struct memory *memory, const cox_runtime *runtime,
                     uint32_t index)
{
    const VkMemoryGetFdInfoKHR info = {.sType = VK_STRUCTURE_TYPE_MEMORY_GET_FD_INFO_KHR,
                                       .memory = memory->memory,
                                       .handleType = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT};
    cl_mem mem;
    int fd;
    CHECK(!vulkan->get_fd(vulkan->device, &info, &fd));
    const cox_status status = cox_opencl_import_fd(runtime, index, fd, memory->bytes, &mem);
    CHECK(status == COX_OK || (status == COX_E_UNSUPPORTED && !mem));
    if (status)
        close(fd);
    return mem;
}

/* Import a semaphore of Vulkan. Returns NULL if the driver cannot. */
static void *import_semaphore(const struct vulkan *vulkan, VkSemaphore semaphore, const cox_runtime *runtime,
                              uint32_t index)
{
    const VkSemaphoreGetFdInfoKHR info = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_GET_FD_INFO_KHR,
                                          .semaphore = semaphore,
                                          .handleType = VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT};
    cl_context context;
    cl_device_id device;
    cl_platform_id platform;
    cl_int code = CL_SUCCESS;
    int fd;
    CHECK(!cox_opencl_device(runtime, index, &context, &device));
    CHECK(!clGetDeviceInfo(device, CL_DEVICE_PLATFORM, sizeof platform, &platform, NULL));
    clCreateSemaphoreWithPropertiesKHR_fn create = (clCreateSemaphoreWithPropertiesKHR_fn)
        clGetExtensionFunctionAddressForPlatform(platform, "clCreateSemaphoreWithPropertiesKHR");
    if (!create)
        return NULL;
    CHECK(!vulkan->get_semaphore_fd(vulkan->device, &info, &fd));
    const cl_semaphore_properties_khr properties[] = {CL_SEMAPHORE_TYPE_KHR, CL_SEMAPHORE_TYPE_BINARY_KHR,
                                                      CL_SEMAPHORE_HANDLE_OPAQUE_FD_KHR,
                                                      (cl_semaphore_properties_khr)fd, 0};
    void *made = create(context, properties, &code);
    if (code)
        close(fd);
    return code ? NULL : made;
}

/* ---- the frame ---- */

static cox_session *new_session(cox_runtime *runtime)
{
    const struct cox__binding bindings[] = {{.name = "in", .access = COX__READ, .pitch_bytes = 4 * COLUMNS},
                                            {.name = "out", .access = COX__WRITE, .pitch_bytes = 4 * COLUMNS}};
    const struct cox__variant variant = {.source = source, .local_columns = 32};
    const struct cox__arg args[] = {COX__ARG_BUFFER(0), COX__ARG_BUFFER(1), COX__ARG_COLUMNS, COX__ARG_ROWS};
    const struct cox__stage stage = {
        .kernel = "more", .columns = COLUMNS, .variant_count = 1, .variants = &variant, .arg_count = 4, .args = args};
    cox_session *session;
    CHECK(!cox__session_create(runtime,
                               &(const struct cox__session_spec){.rows = ROWS,
                                                                 .binding_count = 2,
                                                                 .bindings = bindings,
                                                                 .stage_count = 1,
                                                                 .stages = &stage},
                               &session));
    return session;
}

struct frame {
    cox_session *session;
    cox_buffer *buffers[2]; /* in, out */
    cl_command_queue queue;
    clEnqueueAcquireExternalMemObjectsKHR_fn acquire;
    clEnqueueReleaseExternalMemObjectsKHR_fn release;
};

static void run(const struct frame *frame, cl_mem in, cl_mem out)
{
    CHECK(!frame->acquire(frame->queue, 1, &in, 0, NULL, NULL));
    CHECK(!cox_opencl_read(frame->buffers[0], 0, frame->queue, in, 0, BYTES, 0, NULL, NULL));
    CHECK(!frame->release(frame->queue, 1, &in, 0, NULL, NULL));
    CHECK(!clFinish(frame->queue));
    CHECK(!cox__session_run(frame->session,
                            &(const struct cox__frame_spec){.buffers = frame->buffers, .buffer_count = 2}));
    CHECK(!frame->acquire(frame->queue, 1, &out, 0, NULL, NULL));
    CHECK(!cox_opencl_write(frame->buffers[1], 0, frame->queue, out, 0, BYTES, 0, NULL, NULL));
    CHECK(!frame->release(frame->queue, 1, &out, 0, NULL, NULL));
    CHECK(!clFinish(frame->queue));
}

static void check_words(const struct vulkan *vulkan, const struct memory *read_back, const uint32_t *words)
{
    void *mapped;
    CHECK(!vkMapMemory(vulkan->device, read_back->memory, 0, BYTES, 0, &mapped));
    for (uint32_t i = 0; i < WORDS; i++)
        CHECK(((const uint32_t *)mapped)[i] == words[i / HALF] + 1);
    vkUnmapMemory(vulkan->device, read_back->memory);
}

static struct frame make_frame(cox_runtime *runtime, uint32_t index)
{
    struct frame frame = {.session = new_session(runtime)};
    cl_context context;
    cl_device_id device;
    cl_platform_id platform;
    cl_int code;
    CHECK(!cox_opencl_device(runtime, index, &context, &device));
    CHECK(!clGetDeviceInfo(device, CL_DEVICE_PLATFORM, sizeof platform, &platform, NULL));
    frame.acquire = (clEnqueueAcquireExternalMemObjectsKHR_fn)
        clGetExtensionFunctionAddressForPlatform(platform, "clEnqueueAcquireExternalMemObjectsKHR");
    frame.release = (clEnqueueReleaseExternalMemObjectsKHR_fn)
        clGetExtensionFunctionAddressForPlatform(platform, "clEnqueueReleaseExternalMemObjectsKHR");
    CHECK(frame.acquire && frame.release);
    frame.queue = clCreateCommandQueue(context, device, 0, &code);
    CHECK(!code);
    for (int b = 0; b < 2; b++)
        CHECK(!cox_buffer_create(runtime, BYTES, &frame.buffers[b]));
    return frame;
}

/* Frames on the imported memory itself. With semaphores no thread waits between Vulkan and the frame. Returns false if
 * the driver has no such semaphores. */
static bool frames_work_in_place(const struct vulkan *vulkan, cox_runtime *runtime, uint32_t index,
                                 const struct memory *memories, cl_mem *mems, bool semaphores)
{
    struct order fill = {0}, copy = {0};
    struct cox_opencl_sync syncs[2] = {{.external = true}, {.external = true}};
    if (semaphores && !vulkan->get_semaphore_fd)
        return false;
    if (semaphores) {
        fill.signal = make_semaphore(vulkan);
        copy.wait = make_semaphore(vulkan);
        syncs[0].wait = import_semaphore(vulkan, fill.signal, runtime, index);
        syncs[1].signal = import_semaphore(vulkan, copy.wait, runtime, index);
    }
    const bool can = !semaphores || (syncs[0].wait && syncs[1].signal);
    cox_session *session = new_session(runtime);
    cox_buffer *buffers[2] = {NULL, NULL};
    for (int b = 0; can && b < 2; b++)
        CHECK(!cox_opencl_buffer(runtime, index, mems[b], &syncs[b], NULL, NULL, &buffers[b]));
    for (uint32_t f = 0; can && f < 4; f++) {
        const uint32_t words[] = {f * 2654435761u + 7, ~f};
        transfer(vulkan, &memories[0], NULL, words, fill);
        CHECK(!cox__session_run(session, &(const struct cox__frame_spec){.buffers = buffers, .buffer_count = 2}));
        transfer(vulkan, &memories[2], &memories[1], NULL, copy);
        check_words(vulkan, &memories[2], words);
    }
    cox_session_destroy(&session);
    cox_buffer_destroy(&buffers[0]);
    cox_buffer_destroy(&buffers[1]);
    CHECK(!vkQueueWaitIdle(vulkan->queue));
    vkDestroySemaphore(vulkan->device, fill.signal, NULL);
    vkDestroySemaphore(vulkan->device, copy.wait, NULL);
    return can;
}

/* Returns false if the device cannot import Vulkan's memory. */
static bool frames_go_through(const struct vulkan *vulkan, cox_runtime *runtime, uint32_t index)
{
    const VkMemoryPropertyFlags for_host = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    struct memory in = make_memory(vulkan, VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT, true);
    struct memory out = make_memory(vulkan, VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT, true);
    struct memory read_back = make_memory(vulkan, for_host, false);
    cl_mem in_mem = import(vulkan, &in, runtime, index);
    cl_mem out_mem = in_mem ? import(vulkan, &out, runtime, index) : NULL;
    if (in_mem) {
        CHECK(out_mem);
        struct frame frame = make_frame(runtime, index);
        for (uint32_t f = 0; f < 4; f++) {
            const uint32_t words[] = {f * 2654435761u, ~f};
            transfer(vulkan, &in, NULL, words, (struct order){0});
            run(&frame, in_mem, out_mem);
            transfer(vulkan, &read_back, &out, NULL, (struct order){0});
            check_words(vulkan, &read_back, words);
        }
        cox_session_destroy(&frame.session);
        cox_buffer_destroy(&frame.buffers[0]);
        cox_buffer_destroy(&frame.buffers[1]);
        clReleaseCommandQueue(frame.queue);
        const struct memory memories[] = {in, out, read_back};
        cl_mem mems[] = {in_mem, out_mem};
        struct cox_device_info info;
        CHECK(!cox_runtime_device_info(runtime, index, &info));
        if (info.mode == COX_MODE_STAGED) {
            CHECK(frames_work_in_place(vulkan, runtime, index, memories, mems, false));
            puts("frames in place, with fences");
            if (frames_work_in_place(vulkan, runtime, index, memories, mems, true))
                puts("frames in place, with semaphores");
            else
                puts("frames with semaphores: skipped, because the driver imports none");
        }
        clReleaseMemObject(in_mem);
        clReleaseMemObject(out_mem);
    }
    free_memory(vulkan, &in);
    free_memory(vulkan, &out);
    free_memory(vulkan, &read_back);
    return in_mem != NULL;
}

/* Returns whether frames passed through the device's Vulkan memory; if not, prints why. */
static bool try_device(VkInstance instance, cox_runtime *runtime, uint32_t index)
{
    struct vulkan vulkan = {.instance = instance};
    struct cox_device_info info;
    const char *missing = NULL;
    cl_context context;
    cl_device_id device;
    cl_uchar uuid[CL_UUID_SIZE_KHR];
    CHECK(!cox_runtime_device_info(runtime, index, &info));
    CHECK(!cox_opencl_device(runtime, index, &context, &device));
    if (clGetDeviceInfo(device, CL_DEVICE_UUID_KHR, sizeof uuid, uuid, NULL))
        missing = "it tells no UUID";
    else if (!find_physical(&vulkan, uuid))
        missing = "Vulkan has no device of its UUID";
    else if (!make_device(&vulkan))
        missing = "its Vulkan exports no memory as a descriptor";
    else if (!frames_go_through(&vulkan, runtime, index))
        missing = "it imports no memory from descriptors";
    printf("%s: %s%s\n", info.name, missing ? "skipped, because " : "4 frames in Vulkan's memory",
           missing ? missing : "");
    if (vulkan.device) {
        vkDestroyCommandPool(vulkan.device, vulkan.pool, NULL);
        vkDestroyDevice(vulkan.device, NULL);
    }
    return !missing;
}

int main(void)
{
    cox_runtime *runtime;
    VkInstance instance;
    uint32_t passed = 0;
    const cox_status status = cox_runtime_create(&(const struct cox_runtime_params){.log = on_log}, &runtime);
    if (status == COX_E_NO_PLATFORM || status == COX_E_NO_DEVICE || !make_instance(&instance)) {
        fprintf(stderr, "skipped, because there is no %s\n", status ? "OpenCL device" : "Vulkan driver");
        cox_runtime_destroy(&runtime);
        return 77;
    }
    CHECK(!status);
    for (uint32_t d = 0; d < cox_runtime_device_count(runtime); d++)
        passed += try_device(instance, runtime, d);
    vkDestroyInstance(instance, NULL);
    cox_runtime_destroy(&runtime);
    return passed ? 0 : 77;
}
