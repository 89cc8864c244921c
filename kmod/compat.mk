# SPDX-License-Identifier: GPL-2.0-only
#
# For the Kbuild of each module that includes compat.h: defines WEFT_KERNEL_HAS_NAME if a header of
# this kernel has a certain word. Stable and vendors' kernels move code between versions, so the
# version would not tell.

weft-has = $(shell grep -qsw '$(2)' $(srctree)/include/linux/$(1) && echo -DWEFT_KERNEL_HAS_$(3))

ccflags-y += $(call weft-has,cgroup.h,cgroup_get_from_id,CGROUP_GET_FROM_ID)
ccflags-y += $(call weft-has,cgroup-defs.h,ancestor_ids,ANCESTOR_IDS)
ccflags-y += $(call weft-has,fs.h,copy_splice_read,COPY_SPLICE_READ)
ccflags-y += $(call weft-has,fs.h,file_user_path,FILE_USER_PATH)
ccflags-y += $(call weft-has,irqnr.h,irq_get_nr_irqs,IRQ_GET_NR_IRQS)
ccflags-y += $(call weft-has,kprobes.h,get_kretprobe,GET_KRETPROBE)
ccflags-y += $(call weft-has,mm.h,vm_flags_mod,VM_FLAGS_MOD)
ccflags-y += $(call weft-has,net.h,sock_from_file(struct file \*file),SOCK_FROM_FILE_ALONE)
ccflags-y += $(call weft-has,sched.h,migration_disabled,MIGRATION_DISABLED)
ccflags-y += $(call weft-has,uprobes.h,uprobe_filter_ctx,UPROBE_FILTER_CTX)
ccflags-y += $(call weft-has,uprobes.h,uprobe_unregister_nosync,UPROBE_UNREGISTER_NOSYNC)
# All kernels declare this function; only some export it to modules.
ccflags-y += $(shell grep -qsw mmput_async $(objtree)/Module.symvers && echo -DWEFT_KERNEL_HAS_MMPUT_ASYNC)
