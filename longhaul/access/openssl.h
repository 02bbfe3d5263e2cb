// OpenSSL's objects, owned, and their PEM text. Only sources of this module include it.
#pragma once

#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/evp.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <memory>
#include <string>
#include <string_view>
#include <type_traits>

#include "longhaul/base/result.h"

namespace longhaul::access {

// A constant that is a function can be called as one: a deleter without a state.
template <auto kFree>
using OpensslFree = std::integral_constant<decltype(kFree), kFree>;

using CertificatePtr = std::unique_ptr<X509, OpensslFree<X509_free>>;
using KeyPtr = std::unique_ptr<EVP_PKEY, OpensslFree<EVP_PKEY_free>>;
using KeyUsePtr = std::unique_ptr<EVP_PKEY_CTX, OpensslFree<EVP_PKEY_CTX_free>>;
using ExtensionPtr = std::unique_ptr<X509_EXTENSION, OpensslFree<X509_EXTENSION_free>>;
using StorePtr = std::unique_ptr<X509_STORE, OpensslFree<X509_STORE_free>>;
using VerificationPtr = std::unique_ptr<X509_STORE_CTX, OpensslFree<X509_STORE_CTX_free>>;
using HostNamesPtr = std::unique_ptr<GENERAL_NAMES, OpensslFree<GENERAL_NAMES_free>>;
using BioPtr = std::unique_ptr<BIO, OpensslFree<BIO_free_all>>;
using NumberPtr = std::unique_ptr<BIGNUM, OpensslFree<BN_free>>;

// `what` with OpenSSL's own first reason, whose queue is empty afterwards.
Error openssl_error(const std::string& what);

// Exactly one PEM block as OpenSSL writes it, with nothing around; a key without a passphrase.
Result<CertificatePtr> certificate_of(std::string_view pem);
Result<KeyPtr> key_of(std::string_view pem);

// Empty where OpenSSL fails, for lack of memory.
std::string pem_of(const X509& certificate);
std::string pem_of(const EVP_PKEY& key);  // PKCS #8

}  // namespace longhaul::access
