#!/bin/sh
# Prints the images that deploy/ is built from and runs beside the bot, each with its digest, as lines of deploy/.env:
#   sh deploy/pin.sh >>deploy/.env
# It asks the registries with Docker's buildx. To update, take the lines out of deploy/.env and run it again.
set -eu

pins=
pin() {
    digest=$(docker buildx imagetools inspect --format '{{.Manifest.Digest}}' "$2")
    case $digest in
    sha256:*) pins="$pins$1=$2@$digest
" ;;
    *)
        printf 'pin.sh: the registry names no digest for %s\n' "$2" >&2
        exit 1
        ;;
    esac
}

pin PYTHON_IMAGE python:3.11-slim-bookworm
pin LLAMA_CUDA_IMAGE ghcr.io/ggml-org/llama.cpp:server-cuda
pin LLAMA_IMAGE ghcr.io/ggml-org/llama.cpp:server
pin POSTGRES_IMAGE postgres:17
pin QDRANT_IMAGE qdrant/qdrant:v1.19.0-unprivileged
printf '%s' "$pins"
