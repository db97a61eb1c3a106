"""Tiny diffusers pipelines with random weights, saved as folders: make_models.py [KIND ...] -> $MORE_WORK/models/KIND.

Kinds: wan, ltx, hunyuan, cog (default: all). Sizes are those of diffusers' own tests. A folder that is whole is left alone.
"""
import os
import shutil
import sys

import torch
from diffusers import (AutoencoderKLCogVideoX, AutoencoderKLHunyuanVideo, AutoencoderKLLTXVideo, AutoencoderKLWan,
                       CogVideoXPipeline, CogVideoXTransformer3DModel, DDIMScheduler, FlowMatchEulerDiscreteScheduler,
                       HunyuanVideoPipeline, HunyuanVideoTransformer3DModel, LTXPipeline, LTXVideoTransformer3DModel,
                       WanPipeline, WanTransformer3DModel)
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import (CLIPTextConfig, CLIPTextModel, LlamaConfig, LlamaModel, PreTrainedTokenizerFast, T5Config,
                          T5EncoderModel)

import clip

WORDS = ["<pad>", "</s>", "<unk>", "<s>", *map(chr, range(97, 123)), *"cat walks on the grass realistic style dance monkey".split()]


def make_tokenizer(length=16):
    words = Tokenizer(models.WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="<unk>"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    return PreTrainedTokenizerFast(tokenizer_object=words, pad_token="<pad>", eos_token="</s>", unk_token="<unk>",
                                   bos_token="<s>", model_max_length=length)


def make_t5():
    return T5EncoderModel(T5Config(vocab_size=1024, d_model=32, d_kv=8, d_ff=37, num_layers=2, num_heads=4,
                                   dense_act_fn="gelu_new", feed_forward_proj="gated-gelu")).eval()


def make_wan():
    vae = AutoencoderKLWan(base_dim=int(os.environ.get("WAN_BASE", "8")), z_dim=16, dim_mult=[1, 1, 1, 1], num_res_blocks=1,
                           temperal_downsample=[False, True, True])
    transformer = WanTransformer3DModel(
        patch_size=(1, 2, 2), num_attention_heads=2, attention_head_dim=12, in_channels=16, out_channels=16, text_dim=32,
        freq_dim=256, ffn_dim=32, num_layers=2, cross_attn_norm=True, qk_norm="rms_norm_across_heads", rope_max_seq_len=32)
    return WanPipeline(vae=vae, scheduler=FlowMatchEulerDiscreteScheduler(shift=7.0), text_encoder=make_t5(),
                       tokenizer=make_tokenizer(), transformer=transformer)


def make_ltx():
    widths = (8, 8, 8, 8)
    vae = AutoencoderKLLTXVideo(
        in_channels=3, out_channels=3, latent_channels=8, block_out_channels=widths, decoder_block_out_channels=widths,
        layers_per_block=(1,) * 5, decoder_layers_per_block=(1,) * 5, spatio_temporal_scaling=(True, True, False, False),
        decoder_spatio_temporal_scaling=(True, True, False, False), decoder_inject_noise=(False,) * 5,
        upsample_residual=(False,) * 4, upsample_factor=(1,) * 4, timestep_conditioning=False, patch_size=1, patch_size_t=1,
        encoder_causal=True, decoder_causal=False)
    transformer = LTXVideoTransformer3DModel(
        in_channels=8, out_channels=8, patch_size=1, patch_size_t=1, num_attention_heads=4, attention_head_dim=8,
        cross_attention_dim=32, num_layers=1, caption_channels=32)
    return LTXPipeline(vae=vae, scheduler=FlowMatchEulerDiscreteScheduler(), text_encoder=make_t5(),
                       tokenizer=make_tokenizer(), transformer=transformer)


def make_hunyuan():
    vae = AutoencoderKLHunyuanVideo(
        in_channels=3, out_channels=3, latent_channels=4, down_block_types=("HunyuanVideoDownBlock3D",) * 4,
        up_block_types=("HunyuanVideoUpBlock3D",) * 4, block_out_channels=(8, 8, 8, 8), layers_per_block=1, act_fn="silu",
        norm_num_groups=4, scaling_factor=0.476986, spatial_compression_ratio=8, temporal_compression_ratio=4,
        mid_block_add_attention=True)
    llama = LlamaModel(LlamaConfig(bos_token_id=0, eos_token_id=2, hidden_size=16, intermediate_size=37, layer_norm_eps=1e-05,
                                   num_attention_heads=4, num_hidden_layers=2, pad_token_id=1, vocab_size=1000)).eval()
    text = CLIPTextModel(CLIPTextConfig(bos_token_id=0, eos_token_id=2, hidden_size=8, intermediate_size=37, layer_norm_eps=1e-05,
                                        num_attention_heads=4, num_hidden_layers=2, pad_token_id=1, vocab_size=1000,
                                        hidden_act="gelu", projection_dim=32)).eval()
    transformer = HunyuanVideoTransformer3DModel(
        in_channels=4, out_channels=4, num_attention_heads=2, attention_head_dim=10, num_layers=1, num_single_layers=1,
        num_refiner_layers=1, patch_size=1, patch_size_t=1, guidance_embeds=True, text_embed_dim=16, pooled_projection_dim=8,
        rope_axes_dim=(2, 4, 4))
    return HunyuanVideoPipeline(vae=vae, scheduler=FlowMatchEulerDiscreteScheduler(shift=7.0), text_encoder=llama,
                                tokenizer=make_tokenizer(64), text_encoder_2=text, tokenizer_2=make_tokenizer(77),
                                transformer=transformer)


def make_cog():
    vae = AutoencoderKLCogVideoX(
        in_channels=3, out_channels=3, down_block_types=("CogVideoXDownBlock3D",) * 4, up_block_types=("CogVideoXUpBlock3D",) * 4,
        block_out_channels=(8, 8, 8, 8), latent_channels=4, layers_per_block=1, norm_num_groups=2, temporal_compression_ratio=4)
    transformer = CogVideoXTransformer3DModel(
        num_attention_heads=4, attention_head_dim=8, in_channels=4, out_channels=4, time_embed_dim=2, text_embed_dim=32,
        num_layers=1, sample_width=2, sample_height=2, sample_frames=9, patch_size=2, temporal_compression_ratio=4,
        max_text_seq_length=16)
    return CogVideoXPipeline(vae=vae, scheduler=DDIMScheduler(), text_encoder=make_t5(), tokenizer=make_tokenizer(),
                             transformer=transformer)


KINDS = {"wan": make_wan, "ltx": make_ltx, "hunyuan": make_hunyuan, "cog": make_cog}


def main():
    for kind in sys.argv[1:] or KINDS:
        folder = os.path.join(clip.MODELS, kind)
        if os.path.exists(os.path.join(folder, "model_index.json")):
            continue
        part = folder + ".part"
        shutil.rmtree(part, ignore_errors=True)
        torch.manual_seed(0)
        KINDS[kind]().save_pretrained(part)
        os.rename(part, folder)
        print(folder, flush=True)


if __name__ == "__main__":
    main()
