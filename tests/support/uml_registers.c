/*
 * Loaded into a User-Mode Linux (LD_PRELOAD) where the processor has more registers than it knows.
 *
 * Linux takes a process's registers of floating point and vectors (PTRACE_SETREGSET, NT_X86_XSTATE) only whole. The User-Mode Linux of
 * Debian 12 has room for those of AVX-512, and so stops at once where there are AMX's behind them. What it does not give is left as it is.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/types.h>
#include <sys/uio.h>

#define REGISTERS_BYTES_MAX 65536

long ptrace(enum __ptrace_request request, ...)
{
	static long (*system_ptrace)(enum __ptrace_request, ...);
	static char registers[REGISTERS_BYTES_MAX];
	va_list arguments;
	pid_t pid;
	void *address, *data;

	va_start(arguments, request);
	pid = va_arg(arguments, pid_t);
	address = va_arg(arguments, void *);
	data = va_arg(arguments, void *);
	va_end(arguments);
	if (!system_ptrace)
		system_ptrace = dlsym(RTLD_NEXT, "ptrace");
	if (request == PTRACE_SETREGSET && (size_t)address == NT_X86_XSTATE) {
		struct iovec whole = { registers, sizeof(registers) };
		struct iovec *given = data;

		if (system_ptrace(PTRACE_GETREGSET, pid, address, &whole) == 0 && given->iov_len < whole.iov_len) {
			memcpy(registers, given->iov_base, given->iov_len);
			return system_ptrace(request, pid, address, &whole);
		}
	}
	return system_ptrace(request, pid, address, data);
}
