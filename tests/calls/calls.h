/* The calls that can fail, as  X(name, failure, errno, stream).
 *
 *   failure   ZERO, MINUS: it does nothing and returns 0 or NULL, or -1;  CODE: it returns the errno;
 *             CLOSED: it does its work, then returns -1
 *   stream    the number of the argument that is a stdio stream, which then has its error mark; STDOUT; NONE
 *
 * Each has at most seven arguments, all integers or pointers. The variadic ones of stdio are in calls.c.
 *
 * Left out: what cannot fail, what nobody can answer (munmap, pthread_mutex_lock), and what libuv answers by ending the
 * process (epoll_ctl, epoll_wait).
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_TESTS_CALLS_CALLS_H
#define COX_TESTS_CALLS_CALLS_H

/* clang-format off */
#define MEMORY_CALLS(X) \
    X(malloc, ZERO, ENOMEM, NONE) X(calloc, ZERO, ENOMEM, NONE) X(realloc, ZERO, ENOMEM, NONE) \
    X(aligned_alloc, ZERO, ENOMEM, NONE) X(posix_memalign, CODE, ENOMEM, NONE) \
    X(strdup, ZERO, ENOMEM, NONE) X(strndup, ZERO, ENOMEM, NONE) \
    X(__vasprintf_chk, MINUS, ENOMEM, NONE) X(vasprintf, MINUS, ENOMEM, NONE) \
    X(open_memstream, ZERO, ENOMEM, NONE) X(fmemopen, ZERO, ENOMEM, NONE) \
    X(mmap, MINUS, ENOMEM, NONE) X(mmap64, MINUS, ENOMEM, NONE) X(mremap, MINUS, ENOMEM, NONE) \
    X(madvise, MINUS, EINVAL, NONE)

#define OPEN_CALLS(X) \
    X(open, MINUS, EMFILE, NONE) X(open64, MINUS, EMFILE, NONE) X(__open_2, MINUS, EMFILE, NONE) \
    X(__open64_2, MINUS, EMFILE, NONE) X(openat, MINUS, EMFILE, NONE) X(openat64, MINUS, EMFILE, NONE) \
    X(__openat_2, MINUS, EMFILE, NONE) X(__openat64_2, MINUS, EMFILE, NONE) \
    X(fopen, ZERO, EMFILE, NONE) X(fopen64, ZERO, EMFILE, NONE) X(fdopen, ZERO, ENOMEM, NONE) \
    X(opendir, ZERO, EMFILE, NONE) X(fdopendir, ZERO, ENOMEM, NONE) X(nftw, MINUS, EMFILE, NONE) \
    X(dup, MINUS, EMFILE, NONE) X(dup2, MINUS, EMFILE, NONE) X(fcntl, MINUS, EINVAL, NONE) X(fcntl64, MINUS, EINVAL, NONE) \
    X(pipe2, MINUS, EMFILE, NONE) X(socketpair, MINUS, EMFILE, NONE) \
    X(close, CLOSED, EIO, NONE)

#define READ_CALLS(X) \
    X(read, MINUS, EIO, NONE) X(__read_chk, MINUS, EIO, NONE) X(pread, MINUS, EIO, NONE) X(pread64, MINUS, EIO, NONE) \
    X(__pread_chk, MINUS, EIO, NONE) X(readv, MINUS, EIO, NONE) X(preadv, MINUS, EIO, NONE) \
    X(fread, ZERO, EIO, 3) X(__fread_chk, ZERO, EIO, 4) X(fgets, ZERO, EIO, 2) X(__fgets_chk, ZERO, EIO, 3) \
    X(fgetc, MINUS, EIO, 0) X(getc, MINUS, EIO, 0) X(getdelim, MINUS, EIO, 3) X(fseek, MINUS, EIO, NONE) \
    X(readdir, ZERO, EIO, NONE) X(readlink, MINUS, EIO, NONE) X(readlinkat, MINUS, EIO, NONE) \
    X(realpath, ZERO, EIO, NONE) X(__realpath_chk, ZERO, EIO, NONE) X(lseek, MINUS, EIO, NONE) X(poll, MINUS, ENOMEM, NONE) \
    X(recv, MINUS, ECONNRESET, NONE) X(getdents64, MINUS, EIO, NONE) X(getrandom, MINUS, ENOSYS, NONE)

#define WRITE_CALLS(X) \
    X(write, MINUS, ENOSPC, NONE) X(pwrite, MINUS, ENOSPC, NONE) X(pwrite64, MINUS, ENOSPC, NONE) \
    X(writev, MINUS, ENOSPC, NONE) X(send, MINUS, ECONNRESET, NONE) \
    X(fwrite, ZERO, ENOSPC, 3) X(fputs, MINUS, ENOSPC, 1) X(fputc, MINUS, ENOSPC, 1) X(putc, MINUS, ENOSPC, 1) \
    X(__vfprintf_chk, MINUS, ENOSPC, 0) X(vfprintf, MINUS, ENOSPC, 0) X(fflush, MINUS, ENOSPC, 0) \
    X(puts, MINUS, ENOSPC, STDOUT) X(putchar, MINUS, ENOSPC, STDOUT) \
    X(fclose, CLOSED, ENOSPC, NONE) X(fsync, MINUS, EIO, NONE) X(fdatasync, MINUS, EIO, NONE) \
    X(ftruncate, MINUS, EIO, NONE) X(ftruncate64, MINUS, EIO, NONE) X(fallocate, MINUS, ENOSPC, NONE) \
    X(posix_fallocate, CODE, ENOSPC, NONE)

#define NAME_CALLS(X) \
    X(rename, MINUS, EACCES, NONE) X(renameat, MINUS, EACCES, NONE) X(renameat2, MINUS, EACCES, NONE) \
    X(link, MINUS, EACCES, NONE) X(linkat, MINUS, EACCES, NONE) \
    X(unlink, MINUS, EACCES, NONE) X(unlinkat, MINUS, EACCES, NONE) X(rmdir, MINUS, EACCES, NONE) \
    X(mkdir, MINUS, EACCES, NONE) X(mkdirat, MINUS, EACCES, NONE) \
    X(stat, MINUS, EIO, NONE) X(stat64, MINUS, EIO, NONE) X(fstat, MINUS, EIO, NONE) X(fstat64, MINUS, EIO, NONE) \
    X(lstat, MINUS, EIO, NONE) X(lstat64, MINUS, EIO, NONE) X(fstatat, MINUS, EIO, NONE) X(fstatat64, MINUS, EIO, NONE) \
    X(access, MINUS, EIO, NONE) X(euidaccess, MINUS, EIO, NONE) X(fchmod, MINUS, EPERM, NONE) \
    X(flock, MINUS, ENOLCK, NONE) X(utimensat, MINUS, EPERM, NONE) X(chdir, MINUS, EACCES, NONE)

#define PROCESS_CALLS(X) \
    X(pthread_create, CODE, EAGAIN, NONE) X(fork, MINUS, EAGAIN, NONE) X(execv, MINUS, ENOMEM, NONE) \
    X(waitpid, MINUS, ECHILD, NONE) X(eventfd, MINUS, EMFILE, NONE) X(timerfd_create, MINUS, EMFILE, NONE) \
    X(timerfd_settime, MINUS, EINVAL, NONE) X(epoll_create1, MINUS, EMFILE, NONE) \
    X(sched_getaffinity, MINUS, EINVAL, NONE) X(sched_setaffinity, MINUS, EINVAL, NONE) \
    X(sigaction, MINUS, EINVAL, NONE) X(uname, MINUS, EFAULT, NONE) X(sysconf, MINUS, EINVAL, NONE) \
    X(getloadavg, MINUS, EINVAL, NONE) X(setenv, MINUS, ENOMEM, NONE) X(prctl, MINUS, EINVAL, NONE) \
    X(isatty, ZERO, ENOTTY, NONE) X(ioctl, MINUS, ENOTTY, NONE) X(dlopen, ZERO, ENOENT, NONE) \
    X(hwloc_topology_init, MINUS, ENOMEM, NONE) X(hwloc_topology_load, MINUS, ENOMEM, NONE) \
    X(hwloc_bitmap_alloc, ZERO, ENOMEM, NONE)

/* Functions of libav, which the program finds with dlsym. */
#define LIBAV_POINTERS(X) \
    X(av_buffer_create, ZERO, ENOMEM, NONE) X(av_frame_alloc, ZERO, ENOMEM, NONE) X(av_frame_clone, ZERO, ENOMEM, NONE) \
    X(av_malloc, ZERO, ENOMEM, NONE) X(av_mallocz, ZERO, ENOMEM, NONE) X(av_packet_alloc, ZERO, ENOMEM, NONE) \
    X(avcodec_alloc_context3, ZERO, ENOMEM, NONE) X(avformat_alloc_context, ZERO, ENOMEM, NONE) \
    X(avformat_new_stream, ZERO, ENOMEM, NONE) X(avio_alloc_context, ZERO, ENOMEM, NONE) \
    X(av_stream_new_side_data, ZERO, ENOMEM, NONE) X(av_packet_side_data_new, ZERO, ENOMEM, NONE) \
    X(avcodec_find_encoder, ZERO, ENOMEM, NONE) X(avcodec_find_encoder_by_name, ZERO, ENOMEM, NONE)

/* They return an errno below 0. */
#define LIBAV_STATUSES(X) \
    X(av_dict_copy, CODE, -ENOMEM, NONE) X(av_dict_set, CODE, -ENOMEM, NONE) \
    X(av_find_best_stream, CODE, -ENOMEM, NONE) X(av_frame_copy_props, CODE, -ENOMEM, NONE) \
    X(av_frame_get_buffer, CODE, -ENOMEM, NONE) X(av_interleaved_write_frame, CODE, -EIO, NONE) \
    X(av_opt_set, CODE, -ENOMEM, NONE) X(av_read_frame, CODE, -EIO, NONE) X(av_seek_frame, CODE, -EIO, NONE) \
    X(av_write_trailer, CODE, -EIO, NONE) X(avcodec_default_get_buffer2, CODE, -ENOMEM, NONE) \
    X(avcodec_open2, CODE, -ENOMEM, NONE) X(avcodec_parameters_copy, CODE, -ENOMEM, NONE) \
    X(avcodec_parameters_from_context, CODE, -ENOMEM, NONE) X(avcodec_parameters_to_context, CODE, -ENOMEM, NONE) \
    X(avcodec_receive_frame, CODE, -ENOMEM, NONE) X(avcodec_receive_packet, CODE, -ENOMEM, NONE) \
    X(avcodec_send_frame, CODE, -ENOMEM, NONE) X(avcodec_send_packet, CODE, -ENOMEM, NONE) \
    X(avformat_alloc_output_context2, CODE, -ENOMEM, NONE) X(avformat_find_stream_info, CODE, -EIO, NONE) \
    X(avformat_open_input, CODE, -EIO, NONE) X(avformat_write_header, CODE, -ENOMEM, NONE) \
    X(avio_open_dyn_buf, CODE, -ENOMEM, NONE)
/* clang-format on */

#endif
