/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests: names of numbers among the arguments of system calls, with the values that this
 * machine's headers give them. They are C files: some for the kernel's headers and one for the C
 * library's, because the two cannot be included together.
 */
#ifndef WEFT_NODE_AGENT_KERNEL_SYSCALL_LABELS_H_
#define WEFT_NODE_AGENT_KERNEL_SYSCALL_LABELS_H_

#ifdef __cplusplus
extern "C" {
#endif

struct known_label {
  const char* set; /* of catalogue/syscall_labels.yaml; NULL: the end */
  const char* name;
  unsigned long long value;
};

extern const struct known_label weft_labels_of_uapi[];
extern const struct known_label weft_labels_of_libc[];
extern const struct known_label weft_labels_of_sockets[];
extern const struct known_label weft_labels_of_system[];

#ifdef __cplusplus
}
#endif

#endif /* WEFT_NODE_AGENT_KERNEL_SYSCALL_LABELS_H_ */
